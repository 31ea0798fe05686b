/**
 * What the scripted provider has received: counts since the start, and the latest requests in full.
 */
import { type CallName, callNames, readBody } from "../contracts/session/readRequest.ts"
import { dropOldest } from "./Identities.ts"
import type { Outcome } from "./provider/Call.ts"
import type { FaultSpec } from "./provider/Reply.ts"

/** A request as it arrived, and its result so far. */
export interface CallRecord {
  readonly name: CallName
  /** Email, mobile or bare token; empty without any. */
  readonly account: string
  readonly body: string
  prompt: string | undefined
  /** The faults that apply to it, ordered or scripted. */
  readonly faults: Array<FaultSpec>
  outcome: Outcome | "open"
}

/** A request as it arrived, and its result. */
export interface SeenRequest {
  readonly call: CallName
  /** Email, mobile or bare token; empty without any. */
  readonly account: string
  readonly session: string | undefined
  readonly body: string
  readonly prompt: string | undefined
  /** Names of the faults that applied to it. */
  readonly faults: ReadonlyArray<string>
  readonly outcome: Outcome | "open"
}

/** What the reference upstream has seen. */
export interface Report {
  /** Requests, by call. */
  readonly calls: Readonly<Record<CallName, number>>
  /** Tokens issued, by account. */
  readonly logins: Readonly<Record<string, number>>
  readonly refusedLogins: number
  /** Requests that break the protocol: the call, body, message or credential does not exist. */
  readonly violations: number
  /** What the latest of them were. */
  readonly latestViolations: ReadonlyArray<string>
  readonly sessions: { readonly created: number; readonly deleted: number; readonly open: number }
  /** Requests that are being answered. */
  readonly open: number
  /** Event streams that are running. */
  readonly streams: number
  readonly finished: number
  /** Callers that left before the end. */
  readonly aborted: number
  /** Connections that the provider broke, as ordered. */
  readonly broken: number
  /** Streams that `stop_stream`, or a continue of the same message, ended. */
  readonly stopped: number
  /** Replies that fell silent, as ordered, until the call is stopped. */
  readonly silences: number
  /** The most event streams that ran concurrently, by account and in total. */
  readonly mostAtOnce: Readonly<Record<string, number>>
  readonly mostStreams: number
  /** Prompts of the latest completions. */
  readonly prompts: ReadonlyArray<string>
  readonly requests: ReadonlyArray<SeenRequest>
}

/** Characters of request bodies that are kept. */
const maxCharacters = 16 * 1024 * 1024

/** Accounts with counts; the oldest are dropped. */
const maxAccounts = 20_000

/** Violations that are kept, and the characters of each. */
const mostViolations = 10
const maxViolation = 500

export class CallLog {
  private readonly remember: number
  private calls = new Map<CallName, number>()
  private logins = new Map<string, number>()
  private refusedLogins = 0
  private violations = 0
  private latestViolations: ReadonlyArray<string> = []
  private outcomes = new Map<Outcome, number>()
  private running = new Map<string, number>()
  private most = new Map<string, number>()
  private mostStreams = 0
  private silences = 0
  private records: Array<CallRecord> = []
  private characters = 0
  private open = 0
  private streams = 0

  constructor(remember: number) {
    this.remember = remember
  }

  opened(record: CallRecord): void {
    this.open++
    this.calls.set(record.name, (this.calls.get(record.name) ?? 0) + 1)
    if (this.remember === 0) return
    this.records.push(record)
    this.characters += record.body.length
    while (this.records.length > this.remember || (this.characters > maxCharacters && this.records.length > 1)) {
      this.characters -= this.records.shift()!.body.length
    }
  }

  closed(record: CallRecord, outcome: Outcome): void {
    record.outcome = outcome
    this.open--
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1)
  }

  silent(): void {
    this.silences++
  }

  /** `undefined` is a refused login. */
  login(account: string | undefined): void {
    if (account === undefined) {
      this.refusedLogins++
      return
    }
    this.logins.set(account, (this.logins.get(account) ?? 0) + 1)
    dropOldest(this.logins, maxAccounts)
  }

  violation(what: string): void {
    this.violations++
    this.latestViolations = [...this.latestViolations, what.slice(0, maxViolation)].slice(-mostViolations)
  }

  /** Running event streams of an account. */
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

  /** Resets the counts, apart from those of what is running. */
  forget(): void {
    this.calls = new Map()
    this.logins = new Map()
    this.refusedLogins = 0
    this.violations = 0
    this.latestViolations = []
    this.outcomes = new Map()
    this.most = new Map(this.running)
    this.mostStreams = this.streams
    this.silences = 0
    this.records = []
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
      latestViolations: this.latestViolations,
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
      prompts: this.records.flatMap(({ prompt }) => prompt === undefined ? [] : [prompt]),
      requests: this.records.map(({ account, body, faults, name, outcome, prompt }) => ({
        call: name,
        account,
        session: readBody.session(body)?.chat_session_id,
        body,
        prompt,
        faults: faults.map((fault) => fault.name),
        outcome
      }))
    }
  }
}
