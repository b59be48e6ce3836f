/** One regular file of an agent package; paths are relative, POSIX, checked (spec/08). */
export interface AgentFile {
  path: string;
  bytes: Buffer;
  executable: boolean;
}

/** `container`: runs in the task's container. `brokered`: in a sandbox of its own, and acts through the broker. */
export type AgentKind = 'container' | 'brokered';

/** `agent.yaml`, or what stands in for it. */
export interface AgentManifest {
  schema_version: 1;
  kind: AgentKind;
  command: readonly string[];
  /** Names of environment variables the agent asks for; `plan`: whichever the plan allows. */
  env: readonly string[] | 'plan';
}

/** An immutable agent: the ZIP's bytes are what is hashed, shipped and run. */
export interface AgentPackage {
  /** SHA-256 of the ZIP, hex. */
  agentHash: string;
  zip: Buffer;
  manifest: AgentManifest;
  files: readonly AgentFile[];
}
