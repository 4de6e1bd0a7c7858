/**
 * Keeps this process running when the reader of its output closes the pipe (`| head`). The rest of
 * the output is dropped, the work is completed, and the exit status is that of the work.
 * @returns a function that returns whether the pipe has been closed
 */
export function continueAfterPipeClosed(stream: NodeJS.WritableStream): () => boolean {
  let closed = false;
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    closed = true;
  });
  return () => closed;
}
