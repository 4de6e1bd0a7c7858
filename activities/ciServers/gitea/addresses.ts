/** Returns the URL of a Gitea server from that of its API: `https://HOST/api/v1` → `https://HOST`. */
export function giteaUrlOf(apiUrl: string): string {
  return apiUrl.replace(/\/api\/v1$/, '');
}
