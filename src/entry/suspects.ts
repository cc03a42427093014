import { enableCompileCache } from 'node:module';

enableCompileCache();
await import('./suspects-main.ts');
