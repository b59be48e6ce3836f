import { describe, expect, it } from 'vitest';
import { parseVmConfig } from '../../../guest/attest/vm-config.ts';

describe('parseVmConfig', () => {
  it.each([
    '{"vcpu":4,"memory_mb":8192}',
    '{"cpu_count":4,"memory_size":8589934592}',
    '{"spec_version":1,"os_image_hash":"00","cpu_count":4,"memory_size":8589934592,"qemu_single_pass_add_pages":false,"gpus":[]}',
    '{"vcpu":4,"cpu_count":4,"memory_mb":8192,"memory_size":8589934592}',
  ])('reads %s', (text) => {
    expect(parseVmConfig(text)).toEqual({ vcpu: 4, memory_mb: 8192 });
  });

  it.each([
    '',
    'null',
    '[]',
    '{}',
    '{"vcpu":4}',
    '{"memory_mb":8192}',
    '{"vcpu":0,"memory_mb":8192}',
    '{"vcpu":"4","memory_mb":8192}',
    '{"vcpu":4.5,"memory_mb":8192}',
    '{"vcpu":4,"vcpu":8,"memory_mb":8192}',
    '{"vcpu":4,"cpu_count":8,"memory_mb":8192}',
    '{"vcpu":4,"memory_mb":8192,"memory_size":1048576}',
    '{"vcpu":4,"memory_size":1048577}',
  ])('refuses %j', (text) => {
    expect(() => parseVmConfig(text)).toThrow(
      expect.objectContaining({ code: 'vm_config_invalid', fault: 'attestation' }),
    );
  });
});
