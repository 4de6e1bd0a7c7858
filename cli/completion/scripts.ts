/**
 * Completion scripts. Each passes the words of the line to `holdfast complete --` as arguments,
 * never as code, and shows the candidates. If there are none, it completes file names.
 */

/**
 * Works without the bash-completion package, so it handles `=` and `:` itself. It quotes inserted
 * values, as zsh and fish do.
 */
const BASH = `# bash completion of holdfast
_holdfast() {
  local line typed=\${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  [[ $typed == = ]] && typed=
  while IFS= read -r line; do
    printf -v line %q "\${line%%$'\\t'*}"
    COMPREPLY+=("$line")
  done < <(holdfast complete -- "\${COMP_WORDS[@]:1:COMP_CWORD-1}" "$typed" 2>/dev/null)
}
complete -o default -F _holdfast holdfast
`;

const ZSH = `#compdef holdfast
_holdfast() {
  local line
  local -a found
  while IFS= read -r line; do
    found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done < <(holdfast complete -- "\${(@)words[2,CURRENT-1]}" "\${PREFIX}" 2>/dev/null)
  if (( \${#found} )); then _describe -t holdfast holdfast found; else _files; fi
}
if [[ $funcstack[1] == _holdfast ]]; then
  _holdfast "$@"
else
  (( \${+functions[compdef]} )) || { autoload -Uz compinit && compinit }
  compdef _holdfast holdfast
fi
`;

const FISH = `# fish completion of holdfast
function __holdfast_complete
  set -l words (commandline -opc)
  set -l typed (commandline -ct)
  set -l found (holdfast complete -- $words[2..] "$typed" 2>/dev/null)
  if test (count $found) -gt 0
    printf '%s\\n' $found
  else
    __fish_complete_path "$typed"
  end
end
complete -c holdfast -f -a '(__holdfast_complete)'
`;

/** Completion script of each shell. */
export const SCRIPTS = { bash: BASH, zsh: ZSH, fish: FISH } as const;
/** Names of the shells with a completion script. */
export type Shell = keyof typeof SCRIPTS;
