/**
 * What the reference upstream has seen: counts for ever, the latest requests in full.
 */
import type { Outcome } from "./Call.ts"
import { dropOldest } from "./dropOldest.ts"
import { type CallName, callNames } from "./envelope.ts"

/** A request as it came, and what became of it. */
export interface SeenRequest {
  readonly call: CallName
  /** Email, mobile or bare token; empty where none came. */
  readonly account: string
  readonly session: string | undefined
  readonly body: string
  readonly prompt: string | undefined
  /** Names of the faults that it met. */
  readonly faults: ReadonlyArray<string>
  readonly outcome: Outcome | "open"
}

export interface Report {
  /** Requests that came, by call. */
  readonly calls: Readonly<Record<CallName, number>>
  /** Tokens given out, by account. */
  readonly logins: Readonly<Record<string, number>>
  readonly refusedLogins: number
  /** Requests that no caller who keeps to the protocol sends: no such call, body, message or credential. */
  readonly violations: number
  readonly sessions: { readonly created: number; readonly deleted: number; readonly open: number }
  /** Requests that are being answered. */
  readonly open: number
  /** Event streams that are running. */
  readonly streams: number
  readonly finished: number
  /** Callers that went away before the end. */
  readonly aborted: number
  /** Connections that the upstream broke, as asked. */
  readonly broken: number
  /** Streams that `stop_stream` (or a continue on top of them) ended. */
  readonly stopped: number
  /** Replies that fell silent, as asked; they last until the call is stopped. */
  readonly silences: number
  /** Most event streams that ran at once, by account and in all. */
  readonly mostAtOnce: Readonly<Record<string, number>>
  readonly mostStreams: number
  /** Prompts of the latest completions. */
  readonly prompts: ReadonlyArray<string>
  readonly requests: ReadonlyArray<SeenRequest>
}

/** A request that the ledger follows. */
export interface Entry extends SeenRequest {
  session: string | undefined
  prompt: string | undefined
  account: string
  faults: Array<string>
  outcome: Outcome | "open"
}

/** The most characters of request bodies that are kept. */
const maxCharacters = 16 * 1024 * 1024

/** The most accounts of which counts are kept; the oldest are forgotten. */
const maxAccounts = 20_000

export class Ledger {
  private readonly remember: number
  private calls = new Map<CallName, number>()
  private logins = new Map<string, number>()
  private refusedLogins = 0
  private violations = 0
  private outcomes = new Map<Outcome, number>()
  private running = new Map<string, number>()
  private most = new Map<string, number>()
  private mostStreams = 0
  private silences = 0
  private entries: Array<Entry> = []
  private characters = 0
  private open = 0
  private streams = 0

  constructor(remember: number) {
    this.remember = remember
  }

  opened(call: CallName, account: string, body: string): Entry {
    this.open++
    this.calls.set(call, (this.calls.get(call) ?? 0) + 1)
    const entry: Entry = { call, account, body, session: undefined, prompt: undefined, faults: [], outcome: "open" }
    if (this.remember > 0) {
      this.entries.push(entry)
      this.characters += body.length
      while (this.entries.length > this.remember || (this.characters > maxCharacters && this.entries.length > 1)) {
        this.characters -= this.entries.shift()!.body.length
      }
    }
    return entry
  }

  closed(entry: Entry, outcome: Outcome): void {
    entry.outcome = outcome
    this.open--
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
  }

  silent(): void {
    this.silences++
  }

  login(account: string): void {
    this.logins.set(account, (this.logins.get(account) ?? 0) + 1)
    dropOldest(this.logins, maxAccounts)
  }

  refusedLogin(): void {
    this.refusedLogins++
  }

  violation(): void {
    this.violations++
  }

  /** Event streams of an account that run now. */
  runningOf(account: string): number {
    return this.running.get(account) ?? 0
  }

  streamOpened(account: string): void {
    const running = this.runningOf(account) + 1
    this.running.set(account, running)
    if (running > (this.most.get(account) ?? 0)) this.most.set(account, running)
    dropOldest(this.most, maxAccounts)
    this.streams++
    if (this.streams > this.mostStreams) this.mostStreams = this.streams
  }

  streamClosed(account: string): void {
    const running = this.runningOf(account) - 1
    if (running === 0) this.running.delete(account)
    else this.running.set(account, running)
    this.streams--
  }

  /** Forgets what was counted; what is running goes on being counted. */
  forget(): void {
    this.calls = new Map()
    this.logins = new Map()
    this.refusedLogins = 0
    this.violations = 0
    this.outcomes = new Map()
    this.most = new Map(this.running)
    this.mostStreams = this.streams
    this.silences = 0
    this.entries = []
    this.characters = 0
  }

  report(sessions: Report["sessions"]): Report {
    const calls = Object.fromEntries(callNames.map((name) => [name, this.calls.get(name) ?? 0]))
    const outcome = (name: Outcome) => this.outcomes.get(name) ?? 0
    return {
      calls: calls as Record<CallName, number>,
      logins: Object.fromEntries(this.logins),
      refusedLogins: this.refusedLogins,
      violations: this.violations,
      sessions,
      open: this.open,
      streams: this.streams,
      finished: outcome("finished"),
      aborted: outcome("aborted"),
      broken: outcome("broken"),
      stopped: outcome("stopped"),
      silences: this.silences,
      mostAtOnce: Object.fromEntries(this.most),
      mostStreams: this.mostStreams,
      prompts: this.entries.flatMap((entry) => entry.prompt === undefined ? [] : [entry.prompt]),
      requests: this.entries.map((entry) => ({ ...entry }))
    }
  }
}
