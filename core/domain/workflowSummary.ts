import { escapeMarkdown } from './displayText.ts';

/**
 * Maximum length of a workflow's summary (bytes of UTF-8), according to the SDK's documentation.
 * The server rejects one of twice the length, encrypted or not.
 */
const LONGEST = 200;

/**
 * Returns the summary of a workflow for Temporal's UI: a line of Markdown, truncated if it is too
 * long.
 */
export function workflowSummary(text: string): string {
  const summary = escapeMarkdown(text);
  if (Buffer.byteLength(summary) <= LONGEST) return summary;
  const { read } = new TextEncoder().encodeInto(
    summary,
    new Uint8Array(LONGEST - Buffer.byteLength('…')),
  );
  return `${summary.slice(0, read)}…`;
}
