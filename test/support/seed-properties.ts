import fc from 'fast-check';
import { testSeed } from './seed.ts';

/** Runs before each test file: properties of fast-check try what the seed of the run says. */
fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: testSeed() });
