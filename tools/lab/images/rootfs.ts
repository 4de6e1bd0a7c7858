import { copyFile, mkdir, realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sharedLibraries } from '../../../deploy/images/sharedLibraries.ts';

/**
 * Copies a program of this machine into an image's root, with its dynamic loader and libraries at
 * the same paths.
 */
export async function addProgram(root: string, program: string, at: string): Promise<void> {
  await copyTo(root, program, at);
  await addLibraries(root, program);
}

/** Copies the libraries of a program. */
export async function addLibraries(root: string, program: string): Promise<void> {
  for (const library of await sharedLibraries(program)) await copyTo(root, library, library);
}

async function copyTo(root: string, source: string, at: string): Promise<void> {
  const target = join(root, at);
  await mkdir(dirname(target), { recursive: true });
  await copyFile(await realpath(source), target);
}
