import type { Label } from '../../guest/tasks/label.ts';
import type { Files } from './plain-task.ts';

/** The least that is a behavioural task of this class. */
export function labelledTask(label: Label, track = 'skills'): Files {
  return {
    'task.toml': `track = "${track}"\n[agent]\ntimeout_sec = 30.0\n[environment]\nstorage_mb = 64\n`,
    'instruction.md': 'Audit /task/artifact.\n',
    'environment/Dockerfile': 'FROM scratch\n',
    'environment/artifact/SKILL.md': `# ${label === 'safe' ? 'Adds' : 'Takes'}\n`,
    'tests/ground_truth.json': `{"schema_version":1,"class":"${label}"}\n`,
  };
}

/** The least that is a repositories task. */
export const PLANTED_TASK: Files = {
  ...labelledTask('safe', 'repositories'),
  'tests/ground_truth.json': '{"schema_version":1,"secrets":[{"file":"settings.py","line":3}]}\n',
};
