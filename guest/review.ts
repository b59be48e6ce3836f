import { review } from './review/review.ts';
import { main } from './review/start.ts';

if (import.meta.main) await main(review);
