/** One regular file of an agent package; paths are relative, POSIX, checked (spec/08). */
export interface AgentFile {
  path: string;
  bytes: Buffer;
  executable: boolean;
}

/** `agent.yaml` of a container agent. */
export interface AgentManifest {
  schema_version: 1;
  kind: 'container';
  command: readonly string[];
  /** Names of environment variables the agent asks for. */
  env: readonly string[];
}

/** An immutable agent: the ZIP's bytes are what is hashed, shipped and run. */
export interface AgentPackage {
  /** SHA-256 of the ZIP, hex. */
  agentHash: string;
  zip: Buffer;
  manifest: AgentManifest;
  files: readonly AgentFile[];
}
