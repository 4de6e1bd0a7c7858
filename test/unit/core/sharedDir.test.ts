import { describe, expect, test } from '@jest/globals';
import {
  SHARED_DIR_MAX_BYTES,
  sharedDirError,
  type SharedDirEntry,
} from '../../../core/domain/sharedDir.ts';

const file = (name: string, bytes: number): SharedDirEntry => ({ name, kind: 'file', bytes });

describe('files that steps share', () => {
  test.each<[what: string, entries: readonly SharedDirEntry[], fault: string | undefined]>([
    ['nothing', [], undefined],
    ['files', [file('kubeconfig', 5_000), file('.hidden', 0)], undefined],
    ['one file of the maximum size', [file('a', SHARED_DIR_MAX_BYTES)], undefined],
    [
      'several files of the maximum total size',
      [file('a', 1), file('b', SHARED_DIR_MAX_BYTES - 1)],
      undefined,
    ],
    [
      'one file that is a byte too large',
      [file('a', SHARED_DIR_MAX_BYTES + 1)],
      'SHARED_DIR: must be at most 1048576 bytes, got 1048577, of which "a" has 1048577; move large files to ARTIFACT_DIR',
    ],
    [
      'a total that is a byte too large: the error names the largest file',
      [file('a', 1), file('b', 1_000_000), file('c', 48_576)],
      'SHARED_DIR: must be at most 1048576 bytes, got 1048577, of which "b" has 1000000; move large files to ARTIFACT_DIR',
    ],
    [
      'a folder',
      [file('a', 1), { name: 'logs', kind: 'folder', bytes: 4096 }],
      'SHARED_DIR: must contain only regular files, got the directory "logs"; pack it into one file (tar)',
    ],
    [
      'a link, a socket',
      [{ name: 'a\nb', kind: 'other', bytes: 9 }],
      'SHARED_DIR: must contain only regular files, got "a\\nb"; replace a link with a copy of its target',
    ],
  ])('%s', (_what, entries, fault) => {
    expect(sharedDirError(entries)).toBe(fault);
  });
});
