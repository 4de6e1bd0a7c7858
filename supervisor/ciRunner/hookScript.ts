/** Job hook to write. */
export interface Hook {
  readonly when: 'started' | 'completed';
  /** File to which the note is appended. */
  readonly file: string;
  /** Path of the user's own hook. */
  readonly own: string | undefined;
}

/**
 * Returns the text of a job hook that notes the event and runs the user's own hook. The runner
 * chooses the interpreter by the extension (bash, else sh; pwsh; its own Node), so the script has
 * the extension of the user's hook and runs in the same interpreter. The start is noted before the
 * user's hook runs, and the end after it, whatever its result. A note that cannot be written does
 * not fail the job.
 * @returns undefined for an extension that the runner rejects as well
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
