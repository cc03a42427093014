/**
 * Real servers for tests: found, or installed with apt, and started on a port and in a folder of their own, which
 * are gone when the tests are, however they end. DATABASE_URL and REDIS_URL name servers to use instead.
 */
export { type PostgresServer, startPostgres } from './postgres-server.ts';
export { type RedisServer, startRedis } from './redis-server.ts';
