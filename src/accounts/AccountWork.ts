/**
 * What an account has done lately: its attempts of the last hour, its last failure and its last test. In the memory of one process,
 * and one record of fixed size for each account of the pool that was used or tested.
 */
import * as Schema from "effect/Schema"
import { messageLimit, shorten } from "../domain/redact.ts"

/** The hour is counted in steps of five minutes. */
const stepMillis = 300_000
const steps = 12

/** What an account has done lately. Times are Unix milliseconds. */
export const AccountWorkFacts = Schema.Struct({
  /** When the last attempt began; `null` without any. */
  lastUsedAt: Schema.NullOr(Schema.Finite),
  /** Attempts of the last hour, and the failures of the account or its upstream among them. */
  requestsHour: Schema.Int,
  failedHour: Schema.Int,
  /** The class of the last such failure, and its message. */
  lastError: Schema.NullOr(Schema.Struct({ code: Schema.String, message: Schema.String, at: Schema.Finite })),
  lastTest: Schema.NullOr(Schema.Struct({ success: Schema.Boolean, message: Schema.String, at: Schema.Finite })),
  /** Since when it is as it is, cooling or out; `null` in rotation, and where this process has not seen it leave. */
  heldBackSince: Schema.NullOr(Schema.Finite)
})
export type AccountWorkFacts = typeof AccountWorkFacts.Type

/** The facts of an account that was not used. */
export const noWork: AccountWorkFacts = {
  lastUsedAt: null,
  requestsHour: 0,
  failedHour: 0,
  lastError: null,
  lastTest: null,
  heldBackSince: null
}

const latest = <A extends { readonly at: number }>(a: A | null, b: A | null): A | null =>
  a === null || (b !== null && b.at > a.at) ? b : a

/** What two nodes know of an account. */
export const addWork = (a: AccountWorkFacts, b: AccountWorkFacts): AccountWorkFacts => ({
  lastUsedAt: a.lastUsedAt === null || (b.lastUsedAt !== null && b.lastUsedAt > a.lastUsedAt)
    ? b.lastUsedAt
    : a.lastUsedAt,
  requestsHour: a.requestsHour + b.requestsHour,
  failedHour: a.failedHour + b.failedHour,
  lastError: latest(a.lastError, b.lastError),
  lastTest: latest(a.lastTest, b.lastTest),
  heldBackSince: a.heldBackSince === null || (b.heldBackSince !== null && b.heldBackSince < a.heldBackSince)
    ? b.heldBackSince
    : a.heldBackSince
})

/** Counts the work of one account. */
export class AccountWork {
  readonly #now: () => number
  /** The number of the step that each place counts, its attempts and its failures. */
  readonly #numbers = new Uint32Array(steps)
  readonly #requests = new Uint32Array(steps)
  readonly #failed = new Uint32Array(steps)
  #lastUsedAt: number | null = null
  #lastError: AccountWorkFacts["lastError"] = null
  #lastTest: AccountWorkFacts["lastTest"] = null

  /** `now` is in Unix milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Counts an attempt that begins. */
  began(): void {
    this.#lastUsedAt = this.#now()
    this.#requests[this.#place(this.#lastUsedAt)]!++
  }

  /** Counts a failure of the account or its upstream, before or after the first event. */
  failed(code: string, message: string): void {
    const at = this.#now()
    this.#failed[this.#place(at)]!++
    this.#lastError = { code, message, at }
  }

  /** Records the result of an account test. */
  tested(success: boolean, message: string): void {
    this.#lastTest = { success, message: shorten(message, messageLimit), at: this.#now() }
  }

  facts(): AccountWorkFacts {
    const newest = stepOf(this.#now())
    let requestsHour = 0
    let failedHour = 0
    for (let i = 0; i < steps; i++) {
      const number = this.#numbers[i]!
      // A clock that was set back leaves later steps behind.
      if (number <= newest - steps || number > newest) continue
      requestsHour += this.#requests[i]!
      failedHour += this.#failed[i]!
    }
    return {
      lastUsedAt: this.#lastUsedAt,
      requestsHour,
      failedHour,
      lastError: this.#lastError,
      lastTest: this.#lastTest,
      heldBackSince: null
    }
  }

  /** The place of a step, cleared if another step had it. */
  #place(at: number): number {
    const number = stepOf(at)
    const place = number % steps
    if (this.#numbers[place] !== number) {
      this.#numbers[place] = number
      this.#requests[place] = 0
      this.#failed[place] = 0
    }
    return place
  }
}

const stepOf = (at: number): number => Math.max(0, Math.floor(at / stepMillis))
