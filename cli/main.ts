#!/usr/bin/env node
/** Entry point of the command `holdfast`. */
import { holdfast } from './program.ts';

// A reader that closes the pipe early (`| head`) is not an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

process.exit(
  await holdfast(process.argv.slice(2), {
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    interactive: process.stdin.isTTY === true && process.stderr.isTTY === true,
  }),
);
