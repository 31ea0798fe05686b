/**
 * What one request may still take from the upstream: calls, rounds, bytes, characters, time. One object a request, given to
 * every attempt and round; nothing else counts them, so that whatever the upstream answers, the work has an end.
 *
 * Plain and synchronous: it counts and says no; who asks draws the consequence.
 */
import type { Held } from "../config/CurrentLimits.ts"
import type { Limits } from "../domain/limits.ts"
import { monotonicMillis, type MonotonicSource } from "../domain/time.ts"
import {
  UpstreamCall,
  type UpstreamEvent,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText
} from "../domain/UpstreamEvent.ts"
import { type FailurePhase, UpstreamFailure } from "../domain/UpstreamFailure.ts"

/** Calls that one request may make upstream, over all attempts. */
export const mostCalls = 40
/** Times that a request continues replies cut at the upstream's output limit. */
export const mostContinues = 16
/** Times that a request resumes replies that were cut off. */
export const mostResumes = 8
/** Continues, and resumes, in a row that may bring no new character. */
export const mostIdleRounds = 3

/** Pauses before resumes: none before the first, then 100 ms, doubled each time up to this. */
const longestPause = 3_200

/** The limits that a budget is made of. */
export type BudgetLimits = Pick<
  Limits,
  "reply_bytes" | "reply_chars" | "reply_calls" | "reply_seconds" | "progress_seconds"
>

/** Which time is up: that of the whole reply, or that in which a new character had to come. */
export type Overdue = "reply" | "progress"

/** Counts rounds of one kind, and those in a row that brought nothing. */
class RoundBudget {
  private taken = 0
  private idle = 0
  /** Characters that had come when the last one was taken. */
  private mark = -1
  private readonly most: number

  constructor(most: number) {
    this.most = most
  }

  /** Takes one; gives how many were taken before it, or `undefined` where there is none left. */
  take(characters: number): number | undefined {
    this.idle = this.mark === characters ? this.idle + 1 : 0
    if (this.taken >= this.most || this.idle >= mostIdleRounds) return undefined
    this.mark = characters
    return this.taken++
  }

  /** A reply of another attempt begins: what came of the one before says nothing of it. */
  reset(): void {
    this.idle = 0
    this.mark = -1
  }
}

/** One request's budget. Times are milliseconds. */
export class Budget {
  private readonly limits: BudgetLimits
  private readonly clock: MonotonicSource
  private readonly startedAt: number
  private calls = 0
  private readonly continues = new RoundBudget(mostContinues)
  private readonly resumes = new RoundBudget(mostResumes)
  private bytes = 0
  private characters = 0
  private replyCalls = 0
  /** Time that the reader has waited since the last new character. */
  private waited = 0
  private readonly held: Held | undefined
  private keepsReply: boolean
  /** Bytes of this attempt's reply among those that are held. */
  private heldBytes = 0

  /**
   * Starts to count now: at the lease. What stays in memory of the reply counts into `held`: with `keepsReply` every
   * character, else what `hold` says.
   */
  constructor(limits: BudgetLimits, clock: MonotonicSource, held?: Held, keepsReply = false) {
    this.limits = limits
    this.clock = clock
    this.held = held
    this.keepsReply = keepsReply
    this.startedAt = monotonicMillis(clock)
  }

  /** Another attempt's reply begins; its characters and calls are counted anew, all else goes on. */
  startReply(): void {
    this.characters = 0
    this.replyCalls = 0
    this.waited = 0
    this.held?.add(-this.heldBytes)
    this.heldBytes = 0
    this.continues.reset()
    this.resumes.reset()
  }

  /** Says that the driver keeps the reply's text until its end: from now on every character counts as held. */
  keepReply(): void {
    this.keepsReply = true
  }

  /** Takes one call of the upstream; false where there is none left. */
  takeCall(): boolean {
    if (this.calls >= mostCalls) return false
    this.calls++
    return true
  }

  /** Takes a continue of a reply that was cut at the output limit; false where it has to end as cut off by length. */
  takeContinue(): boolean {
    return this.continues.take(this.characters) !== undefined
  }

  /** Takes a resume of a reply that was cut off: the pause to keep before it, or `undefined` where there is none left. */
  takeResume(): number | undefined {
    const before = this.resumes.take(this.characters)
    return before === undefined ? undefined : before === 0 ? 0 : Math.min(longestPause, 100 * 2 ** (before - 1))
  }

  /** Counts bytes that were read, comments included; false once there are too many. */
  addBytes(count: number): boolean {
    this.bytes += count
    return this.bytes <= this.limits.reply_bytes
  }

  /** Counts new characters of the reply and gives how many of them it may still have. */
  addChars(count: number): number {
    const room = Math.max(0, this.limits.reply_chars - this.characters)
    this.characters += count
    if (count > 0) this.waited = 0
    return Math.min(room, this.keep(count))
  }

  /** Counts characters of a reply that is kept among what all requests hold: all of them, or none where that is too much. */
  private keep(count: number): number {
    if (this.held === undefined || !this.keepsReply) return count
    this.heldBytes += 2 * count
    return this.held.add(2 * count) ? count : 0
  }

  /**
   * Says how many characters of a streamed reply wait in memory now, such as the arguments of a call that is open. Returns
   * false where they have become more and all requests together hold too much: the reply has to be cut.
   */
  hold(characters: number): boolean {
    const more = 2 * characters - this.heldBytes
    if (this.held === undefined || this.keepsReply || more === 0) return true
    this.heldBytes += more
    return this.held.add(more) || more < 0
  }

  /** Characters of this attempt's reply so far, shown or not. */
  get produced(): number {
    return this.characters
  }

  /** Counts a call of the reply; false where it may have no more. */
  addCall(): boolean {
    if (this.replyCalls >= this.limits.reply_calls) return false
    this.replyCalls++
    return true
  }

  /** Counts time in which somebody waited for the upstream; time in which nobody reads is no lack of progress. */
  addWaiting(millis: number): void {
    this.waited += millis
  }

  /** Milliseconds left for one who has waited for so long and not yet said so, in all and for progress; none is overdue. */
  timeLeft(waiting: number, now = monotonicMillis(this.clock)): { readonly millis: number; readonly of: Overdue } {
    const reply = this.startedAt + this.limits.reply_seconds * 1000 - now
    const progress = this.limits.progress_seconds * 1000 - this.waited - waiting
    return progress < reply ? { millis: progress, of: "progress" } : { millis: reply, of: "reply" }
  }

  /** The failure of one who was refused a call. */
  noCallLeft(phase: FailurePhase): UpstreamFailure {
    return new UpstreamFailure({
      phase,
      kind: "exhausted",
      message: `the reply was not complete after ${mostCalls} calls`
    })
  }

  /** The failure of a reply of too many bytes. */
  tooManyBytes(phase: FailurePhase): UpstreamFailure {
    return new UpstreamFailure({
      phase,
      kind: "exhausted",
      message: `the reply came with more than ${this.limits.reply_bytes} bytes`
    })
  }

  /** The failure of a reply whose time is up. */
  overdue(phase: FailurePhase, of: Overdue): UpstreamFailure {
    const { progress_seconds, reply_seconds } = this.limits
    return new UpstreamFailure({
      phase,
      kind: "overdue",
      message: of === "reply"
        ? `the reply was not complete after ${reply_seconds} s`
        : `the reply had nothing new for ${progress_seconds} s`
    })
  }

  /**
   * Counts the characters of the events from index `from` on. Where the reply becomes too long, what is beyond is taken out, an
   * end as by length comes in its place, and it gives true: nothing more is wanted of the upstream.
   */
  admit(events: Array<UpstreamEvent>, from: number): boolean {
    for (let i = from; i < events.length; i++) {
      const event = events[i]!
      const size = sizeOf(event)
      if (size === 0) continue
      const room = this.addChars(size)
      if (room === size) continue
      events.length = i
      if (room > 0) events.push(...shortened(event, room))
      events.push(UpstreamFinish("length"))
      return true
    }
    return false
  }
}

const sizeOf = (event: UpstreamEvent): number => {
  switch (event._tag) {
    case "UpstreamText":
    case "UpstreamReasoning":
      return event.text.length
    case "UpstreamCall":
      // A piece without a character is one all the same: it may open a call, and costs as much.
      return Math.max(1, event.argumentsDelta.length + (event.name?.length ?? 0))
    case "UpstreamUsage":
    case "UpstreamFinish":
      return 0
  }
}

/** No half of a surrogate pair is left at the cut. */
const cut = (text: string, room: number): string => {
  const last = text.charCodeAt(room - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? room - 1 : room)
}

/** What fits of an event; a call's name is not cut. */
const shortened = (event: UpstreamEvent, room: number): ReadonlyArray<UpstreamEvent> => {
  switch (event._tag) {
    case "UpstreamText":
      return [UpstreamText(cut(event.text, room))]
    case "UpstreamReasoning":
      return [UpstreamReasoning(cut(event.text, room))]
    case "UpstreamCall": {
      const left = room - (event.name?.length ?? 0)
      return left <= 0 ? [] : [UpstreamCall(event.index, event.id, event.name, cut(event.argumentsDelta, left))]
    }
    case "UpstreamUsage":
    case "UpstreamFinish":
      return [event]
  }
}
