import type { Running } from './process.ts';

/** What a deployed VM would hand its guest, and who hears what that says. */
export interface GuestStart {
  /** The bytes that the machine booted with. */
  appCompose: Buffer;
  /** Literals of that compose's command, for a guest that is started without it. */
  planRoot: { publicKey: string; challengeId: string };
  /** The machine's guest agent. */
  guestAgentSocket: string;
  /** Values of the variables that the compose names. */
  env: Readonly<Record<string, string>>;
  onStdout: (line: string) => void;
  onStderr: (line: string) => void;
}

/** Where a run's guest lives: as a process of this machine, or as its image in a container. */
export interface GuestPlace {
  /** `repo@sha256:…`, as the compose names it. */
  imageRef: string;
  /** The revision of what runs. */
  gitRevision: string;
  /** The mechanism's file as the guest has it. */
  mechanism: string;
  /** The address of this machine at which the guest reaches the challenge. */
  challengeHost: string;
  /** @throws engine_*. */
  start(start: GuestStart): Promise<Running>;
}
