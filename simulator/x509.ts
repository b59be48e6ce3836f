/** @peculiar/x509 needs the metadata polyfill loaded before it (tsyringe); this file is the order. */
import 'reflect-metadata';

export * from '@peculiar/x509';
