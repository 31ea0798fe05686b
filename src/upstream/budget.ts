/**
 * What one request may still take from the upstream: calls, rounds, bytes, characters, time. Every attempt and round of the
 * request shares one object, so the work is bounded whatever the upstream answers.
 *
 * Plain and synchronous: it only counts and refuses; the caller acts on a refusal.
 */
import type { Held } from "../config/limits.ts"
import type { Limits } from "../domain/limits.ts"
import { isContentPlace, isEventPlace } from "../domain/replyExtras.ts"
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
/** Continues, and resumes, in a row that may pass without a new character. */
const mostIdleRounds = 3

/** The longest pause before a resume, in milliseconds. The first has no pause; then they double from 100 ms. */
const longestPause = 3_200

/** The limits that a budget is made of. */
type BudgetLimits = Pick<
  Limits,
  "reply_bytes" | "reply_chars" | "reply_calls" | "reply_seconds" | "progress_seconds"
>

/** The headers of an answer, by their names in lower case. */
export type AnswerHeaders = Readonly<Record<string, string | Array<string> | undefined>>

/** The exceeded limit: the time of the whole reply, or the time without a new character. */
type Overdue = "reply" | "progress"

/** Counts rounds of one kind, and those in a row without a new character. */
class RoundBudget {
  private taken = 0
  private idle = 0
  /** The characters of the reply when the last round was taken. */
  private mark = -1
  private readonly most: number

  constructor(most: number) {
    this.most = most
  }

  /** Takes one round; returns how many were taken before it, or `undefined` at the limit. */
  take(characters: number): number | undefined {
    this.idle = this.mark === characters ? this.idle + 1 : 0
    if (this.taken >= this.most || this.idle >= mostIdleRounds) return undefined
    this.mark = characters
    return this.taken++
  }

  /** The reply of another attempt begins. */
  reset(): void {
    this.idle = 0
    this.mark = -1
  }
}

/** One request's budget. Times are milliseconds. */
export class RequestBudget {
  private readonly limits: BudgetLimits
  private readonly clock: MonotonicSource
  private readonly startedAt: number
  private calls = 0
  private readonly continues = new RoundBudget(mostContinues)
  private readonly resumes = new RoundBudget(mostResumes)
  private bytes = 0
  private characters = 0
  private replyCalls = 0
  /** Milliseconds that the reader has waited since the last new character. */
  private waited = 0
  /** Nothing of this attempt's reply has come: no text, reasoning, call or picture. */
  isEmpty = true
  /** This attempt's request has begun to leave on a connection. */
  isSent = false
  /** The headers of this attempt's newest answer, by their names in lower case. */
  heard: AnswerHeaders | undefined
  /** The newest event of this attempt's reply that states the account's quota (`windowsOfEvent`). */
  statedQuota: unknown
  private readonly held: Held | undefined
  private keepsReply: boolean
  /** Bytes of this attempt's reply in `held`. */
  private heldBytes = 0

  /**
   * Time starts now, at the lease. The reply's memory counts towards `held`: with `keepsReply` every character, otherwise what
   * `hold` states.
   */
  constructor(limits: BudgetLimits, clock: MonotonicSource, held?: Held, keepsReply = false) {
    this.limits = limits
    this.clock = clock
    this.held = held
    this.keepsReply = keepsReply
    this.startedAt = monotonicMillis(clock)
  }

  /** The reply of another attempt begins: resets its characters and calls, and keeps the other counts. */
  startReply(): void {
    this.characters = 0
    this.replyCalls = 0
    this.waited = 0
    this.held?.add(-this.heldBytes)
    this.heldBytes = 0
    this.continues.reset()
    this.resumes.reset()
  }

  /** The driver keeps the text until the end of the reply: from now on every character counts as held. */
  keepReply(): void {
    this.keepsReply = true
  }

  /** Takes one call of the upstream; false at the limit. */
  takeCall(): boolean {
    if (this.calls >= mostCalls) return false
    this.calls++
    return true
  }

  /** Takes a continue of a reply that was cut at the output limit; false at the limit, where the reply ends by length. */
  takeContinue(): boolean {
    return this.continues.take(this.characters) !== undefined
  }

  /** Takes a resume of a reply that was cut off; returns the pause before it, or `undefined` at the limit. */
  takeResume(): number | undefined {
    const before = this.resumes.take(this.characters)
    return before === undefined ? undefined : before === 0 ? 0 : Math.min(longestPause, 100 * 2 ** (before - 1))
  }

  /** Counts received bytes, comments included; false above the limit. */
  addBytes(count: number): boolean {
    this.bytes += count
    return this.bytes <= this.limits.reply_bytes
  }

  /** Counts bytes of the reply that wait to be decoded towards the memory of all requests; false if that is exceeded. */
  keepBytes(count: number): boolean {
    this.heldBytes += count
    return this.held?.add(count) !== false
  }

  /** Counts new characters of the reply; returns how many of them fit. */
  addChars(count: number): number {
    const room = Math.max(0, this.limits.reply_chars - this.characters)
    this.characters += count
    if (count > 0) this.waited = 0
    return Math.min(room, this.keep(count))
  }

  /** Counts characters of a kept reply towards the memory of all requests; returns 0 if that is exceeded. */
  private keep(count: number): number {
    if (this.held === undefined || !this.keepsReply) return count
    this.heldBytes += 2 * count
    return this.held.add(2 * count) ? count : 0
  }

  /**
   * States how many characters of a streamed reply are in memory now, such as the arguments of an open call. Returns false if
   * they grew and all requests together exceed their memory: then the reply has to be cut.
   */
  hold(characters: number): boolean {
    const more = 2 * characters - this.heldBytes
    if (this.held === undefined || this.keepsReply || more === 0) return true
    this.heldBytes += more
    return this.held.add(more) || more < 0
  }

  /** Characters of this attempt's reply so far, visible or not. */
  get produced(): number {
    return this.characters
  }

  /** Counts a tool call of the reply; false at the limit. */
  addCall(): boolean {
    if (this.replyCalls >= this.limits.reply_calls) return false
    this.replyCalls++
    return true
  }

  /** Something new came that is not counted in characters. */
  progressed(): void {
    this.waited = 0
  }

  /** Counts time that the reader waited for the upstream; other time does not count as lack of progress. */
  addWaiting(millis: number): void {
    this.waited += millis
  }

  /** The milliseconds left, and by which limit, after a wait of `waiting` that was not added yet; 0 or less is overdue. */
  timeLeft(waiting: number, now = monotonicMillis(this.clock)): { readonly millis: number; readonly of: Overdue } {
    const reply = this.startedAt + this.limits.reply_seconds * 1000 - now
    const progress = this.limits.progress_seconds * 1000 - this.waited - waiting
    return progress < reply ? { millis: progress, of: "progress" } : { millis: reply, of: "reply" }
  }

  /** The failure at the limit of calls. */
  noCallLeft(phase: FailurePhase): UpstreamFailure {
    return new UpstreamFailure({
      phase,
      kind: "exhausted",
      message: `the reply was not complete after ${mostCalls} calls`
    })
  }

  /** The failure at the limit of bytes. */
  tooManyBytes(phase: FailurePhase): UpstreamFailure {
    return new UpstreamFailure({
      phase,
      kind: "exhausted",
      message: `the reply came with more than ${this.limits.reply_bytes} bytes`,
      advice: "limits.reply_bytes"
    })
  }

  /** The failure of a reply for which the memory of all requests has no room. */
  tooMuchKept(phase: FailurePhase): UpstreamFailure {
    return new UpstreamFailure({
      phase,
      kind: "exhausted",
      message: "the reply exceeds what the gateway keeps of all replies together",
      advice: "limits.buffered_bytes"
    })
  }

  /** The failure at a limit of time. */
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
   * Counts the characters of the events from index `from` on. Returns true if the reply exceeds its limit: then the rest is
   * removed, and a finish by length takes its place.
   */
  admit(events: Array<UpstreamEvent>, from: number): boolean {
    for (let i = from; i < events.length; i++) {
      const event = events[i]!
      if (event._tag === "UpstreamExtra" && isEventPlace(event.at)) {
        this.progressed()
        // What it says is counted with the events beside it. What memory keeps of it is an item.
        if (event.at !== "item" || this.keep(JSON.stringify(event.value).length) > 0) continue
        events.length = i
        events.push(UpstreamFinish("length"))
        return true
      }
      const size = sizeOf(event)
      if (size === 0) continue
      // A server's own field beside the content does not cut the content that it comes with.
      if (
        event._tag === "UpstreamExtra" && !isContentPlace(event.at) && size > this.limits.reply_chars - this.characters
      ) {
        events.splice(i--, 1)
        continue
      }
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

const sealedSize = ({ sealed }: UpstreamCall): number => sealed === undefined ? 0 : JSON.stringify(sealed).length

const sizeOf = (event: UpstreamEvent): number => {
  switch (event._tag) {
    case "UpstreamText":
    case "UpstreamReasoning":
      return event.text.length
    case "UpstreamCall":
      // Empty pieces count too: they may open a call, and cost as much.
      return Math.max(1, event.argumentsDelta.length + (event.name?.length ?? 0) + sealedSize(event))
    case "UpstreamExtra":
      return JSON.stringify(event.value).length
    case "UpstreamUsage":
    case "UpstreamChoice":
    case "UpstreamFinish":
      return 0
  }
}

/** Cuts without leaving half of a surrogate pair. */
const cut = (text: string, room: number): string => {
  const last = text.charCodeAt(room - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? room - 1 : room)
}

/** The part of an event that fits; the name of a call is never cut. */
const shortened = (event: UpstreamEvent, room: number): ReadonlyArray<UpstreamEvent> => {
  switch (event._tag) {
    case "UpstreamText":
      return [UpstreamText(cut(event.text, room))]
    case "UpstreamReasoning":
      return [UpstreamReasoning(cut(event.text, room))]
    case "UpstreamCall": {
      const left = room - (event.name?.length ?? 0) - sealedSize(event)
      return left <= 0
        ? []
        : [UpstreamCall(event.index, event.id, event.name, cut(event.argumentsDelta, left), event.sealed)]
    }
    case "UpstreamExtra":
      return []
    case "UpstreamUsage":
    case "UpstreamChoice":
    case "UpstreamFinish":
      return [event]
  }
}
