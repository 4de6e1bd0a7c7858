/** A job hook to be written. */
export interface Hook {
  readonly when: 'started' | 'completed';
  /** The file that takes the note. */
  readonly file: string;
  /** The user's own hook. */
  readonly own: string | undefined;
}

/**
 * The text of a job hook that notes the event and runs the user's own. The runner chooses the interpreter by the extension (bash,
 * else sh; pwsh; its own Node), so ours has the extension of the user's and runs in the same interpreter. The start is noted before
 * the user's hook runs, the end after it, however it ended. A note that cannot be written fails no job.
 * @returns undefined for an extension that the runner refuses, too
 */
export function hookScript(extension: string, hook: Hook): string | undefined {
  switch (extension) {
    case '.sh':
      return shell(hook);
    case '.ps1':
      return powershell(hook);
    case '.js':
      return javascript(hook);
    default:
      return undefined;
  }
}

function shell({ when, file, own }: Hook): string {
  const note = `echo ${when} >> ${quoted(file)} || true`;
  if (own === undefined) return `${note}\n`;
  const run = `if command -v bash > /dev/null; then bash --noprofile --norc -e -o pipefail ${quoted(own)}; else sh -e ${quoted(own)}; fi`;
  return when === 'started'
    ? `${note}\n${run}\n`
    : `status=0\n{ ${run}; } || status=$?\n${note}\nexit "$status"\n`;
}

function powershell({ when, file, own = '' }: Hook): string {
  const note = `try { Add-Content -LiteralPath ${powershellQuoted(file)} -Value ${when} } catch { }`;
  const run = `. ${powershellQuoted(own)}`;
  return when === 'started' ? `${note}\n${run}\n` : `try { ${run} } finally { ${note} }\n`;
}

function javascript({ when, file, own = '' }: Hook): string {
  const note = `try { require('node:fs').appendFileSync(${JSON.stringify(file)}, ${JSON.stringify(`${when}\n`)}); } catch {}`;
  const run = `require(${JSON.stringify(own)});`;
  return when === 'started'
    ? `${note}\n${run}\n`
    : `process.on('exit', () => { ${note} });\n${run}\n`;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const powershellQuoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
