/** What is used of BullMQ and its client of Redis. The build has it in few files (scripts/build/bundle-packages.ts). */
export { type Job, Queue, Worker } from 'bullmq';
export { Redis, type RedisOptions, ReplyError } from 'ioredis';
