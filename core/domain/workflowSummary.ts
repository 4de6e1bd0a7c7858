import { escapeMarkdown } from './displayText.ts';

/** Bytes of UTF-8: what the SDK's documentation allows a workflow's summary; the server refuses one of twice as many, encrypted or not. */
const LONGEST = 200;

/** The summary that Temporal shows of a workflow: a line of Markdown, cut where it is too long. */
export function workflowSummary(text: string): string {
  const summary = escapeMarkdown(text);
  if (Buffer.byteLength(summary) <= LONGEST) return summary;
  const { read } = new TextEncoder().encodeInto(
    summary,
    new Uint8Array(LONGEST - Buffer.byteLength('…')),
  );
  return `${summary.slice(0, read)}…`;
}
