import type { AlertKind } from '../../core/alerts/alerts.ts';

export interface AlertRow {
  id: number;
  kind: AlertKind;
  /** Name of the job; empty for the server itself. */
  subject: string;
  text: string;
  firedAt: number;
  /** Null while it is firing. */
  resolvedAt: number | null;
}

/** Nobody is told of these until a time. */
export interface AlertSilence {
  /** Null: of every kind. */
  kind: AlertKind | null;
  /** Null: of every job and of the server. */
  subject: string | null;
  until: number;
}

export interface AlertStore {
  /** Null when it is firing already: another server was first. */
  fire(alert: { kind: AlertKind; subject: string; text: string; now: number }): Promise<number | null>;
  /** False when another server was first. */
  resolve(kind: AlertKind, subject: string, now: number): Promise<boolean>;
  firing(): Promise<AlertRow[]>;
  /** The newest first, from the one before `before` on. */
  list(options: { before: number; limit: number }): Promise<AlertRow[]>;
  silence(silence: AlertSilence): Promise<void>;
  silences(now: number): Promise<AlertSilence[]>;
  /** Deletes what was resolved before, and silences that are over. */
  forget(before: number): Promise<void>;
}
