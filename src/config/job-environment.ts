/** What code of jobs sees of the environment: nothing that is the operator's own. */

/** Names that are no secrets, and that programs need. */
const PLAIN = new Set([
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'TZ', 'TERM', 'NO_COLOR', 'CI'],
  ...['TMPDIR', 'TMP', 'TEMP', 'NODE_ENV', 'NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'],
  ...['PLAYWRIGHT_BROWSERS_PATH', 'LD_LIBRARY_PATH', 'FONTCONFIG_PATH', 'SYSTEMROOT'],
  ...[
    'AWS_REGION',
    'AWS_DEFAULT_REGION',
    'AWS_PROFILE',
    'AWS_CONFIG_FILE',
    'AWS_ENDPOINT_URL',
    'AWS_ENDPOINT_URL_S3',
  ],
  ...['AWS_LAMBDA_FUNCTION_NAME', 'AWS_LAMBDA_FUNCTION_MEMORY_SIZE', 'AWS_EXECUTION_ENV', 'LAMBDA_TASK_ROOT'],
]);

/** Languages, and how PostgreSQL is reached. */
const PATTERN = /^LC_|^PG(HOST|PORT|USER|DATABASE|SSLMODE|SSLROOTCERT|PASSFILE|APPNAME)$/;

/** What is no secret: such as the address of a site. */
const OF_JOBS = /^JOB_/;

/** Variables whose name says that they are secrets for jobs. */
export const FOR_JOBS = /^seine[_-]secret[_-]/i;

/** `listed`: variables that the operator gives to jobs. */
export function jobEnvironment(env: NodeJS.ProcessEnv, listed: readonly string[]): Record<string, string> {
  const isShown = (name: string) =>
    PLAIN.has(name) ||
    PATTERN.test(name) ||
    OF_JOBS.test(name) ||
    FOR_JOBS.test(name) ||
    listed.includes(name);
  const shown: Record<string, string> = {};
  for (const [name, value] of Object.entries(env))
    if (value !== undefined && isShown(name)) shown[name] = value;
  return shown;
}
