import fc from 'fast-check';
import { describe, expect, test } from '@jest/globals';
import {
  escapeControlCharacters,
  escapeMarkdown,
  stripControlCharacters,
  truncate,
} from '../../../core/domain/displayText.ts';

describe('on a terminal', () => {
  test.each([
    ['plain', 'plain'],
    ['\u001B[31mred\u001B[0m', '[31mred[0m'],
    ['bell\u0007 and \u009Bcsi', 'bell and csi'],
    ['two\r\nlines\tand  tab', 'two lines and tab'],
    ['name\u202Etxt.exe', 'nametxt.exe'],
    ['ze\u200Bro', 'zero'],
    ['tag\u{E0041}ged', 'tagged'],
    ['grüße 🦦', 'grüße 🦦'],
  ])('printable(%j)', (text, expected) => {
    expect(stripControlCharacters(text)).toBe(expected);
  });

  test('shorten counts characters, not UTF-16 units', () => {
    expect(truncate('🦦🦦🦦', 3)).toBe('🦦🦦🦦');
    expect(truncate('🦦🦦🦦🦦', 3)).toBe('🦦🦦…');
  });
});

describe('in a log', () => {
  test.each([
    ['plain text, "quoted" \\n', 'plain text, "quoted" \\n'],
    ['done\n12:00:00 INFO  forged', 'done\\n12:00:00 INFO  forged'],
    ['done\u2028forged\u0085forged', 'done\\u2028forged\\u0085forged'],
    ['\u001B[2J\u009B31m\u007F', '\\u001b[2J\\u009b31m\\u007f'],
    ['name\u202Etxt.exe', 'name\\u202etxt.exe'],
    ['tag\u{E0041}ged', 'tag\\udb40\\udc41ged'],
    ['grüße 🦦', 'grüße 🦦'],
  ])('escaped(%j)', (text, expected) => {
    expect(escapeControlCharacters(text)).toBe(expected);
  });

  test('values in a JSON document are unchanged', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const line = escapeControlCharacters(JSON.stringify({ text }));
        expect(JSON.parse(line)).toEqual({ text });
        expect(stripControlCharacters(line.replaceAll(/\s/g, ''))).toBe(line.replaceAll(/\s/g, ''));
      }),
    );
  });
});

describe('in Markdown', () => {
  test.each([
    ['a name', 'acme-linux-1 (linux, x64)', 'acme-linux-1 (linux, x64)'],
    ['a link', '[click](https://evil.example)', '\\[click\\](https://evil.example)'],
    ['a picture', '![x](https://evil.example/p.gif)', '!\\[x\\](https://evil.example/p.gif)'],
    ['an address as a link', '<https://evil.example>', '\\<https://evil.example\\>'],
    [
      'a link by reference',
      '[click][1]\n\n[1]: https://evil.example',
      '\\[click\\]\\[1\\] \\[1\\]: https://evil.example',
    ],
    ['HTML', '<img src=x onerror=alert(1)>', '\\<img src=x onerror=alert(1)\\>'],
    ['an entity', '&lt;b&gt; &#124;', '\\&lt;b\\&gt; \\&#124;'],
    ['code', '`rm -rf /`', '\\`rm -rf /\\`'],
    ['a table cell', 'a | b', 'a \\| b'],
    ['an escaped bar', 'a \\| b', 'a \\\\\\| b'],
    ['a table row', 'a\n| Phase | Gone |', 'a \\| Phase \\| Gone \\|'],
    ['a heading', 'a\r\n# Approved', 'a # Approved'],
    [
      'emphasis',
      '**Approved** _by_ ~~nobody~~',
      '\\*\\*Approved\\*\\* \\_by\\_ \\~\\~nobody\\~\\~',
    ],
    ["what Temporal's UI fills in", '{workflowId}', '\\{workflowId\\}'],
    [
      'an escape of the terminal',
      '\u001B]8;;https://evil.example\u0007click',
      '\\]8;;https://evil.exampleclick',
    ],
    ['text from right to left', 'name\u202Etxt.exe', 'nametxt.exe'],
  ])('%s', (_what, text, expected) => {
    expect(escapeMarkdown(text)).toBe(expected);
  });

  test('long text is cut, never within an escape', () => {
    const text = escapeMarkdown('|'.repeat(10_000));
    expect(text).toBe(`${'\\|'.repeat(499)}…`);
  });

  test('every character with a meaning in Markdown is escaped', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(escapeMarkdown(text).replaceAll(/\\[\\`*_{}[\]<>|~&$]/g, '')).not.toMatch(
          /[\\`*_{}[\]<>|~&$\n\r]/,
        );
      }),
    );
  });
});
