/**
 * One streamed HTTP exchange with an upstream: a connection of its own scope, and time limits that cost no fiber per read.
 *
 * A single watchdog closes the connection when the upstream has been silent for too long; the read that waits then fails,
 * and the failure says `timeout`. Time in which nobody reads does not count.
 */
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpClient from "effect/http/HttpClient"
import type * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { monotonicMillis } from "../domain/monotonicMillis.ts"
import type { FailurePhase } from "../domain/UpstreamFailure.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Machine } from "../stream/transducer.ts"
import type { Budget, Overdue } from "./budget.ts"

/** Time limits in milliseconds. */
export interface ConnectionLimits {
  /** From the request to the reply's head, and from there to its first byte. */
  readonly firstByte: number
  /** Between two reads of the body. */
  readonly silence: number
}

/** A body that is being read. */
export type BytesPull = Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>, UpstreamFailure>

/** A connection whose reply has begun. */
export interface Connection {
  readonly response: HttpClientResponse.HttpClientResponse
  /** Starts to read the body: its bytes as they come; fails as `transport` or `timeout`. */
  readonly pull: Effect.Effect<BytesPull, never, Scope.Scope>
  /** The same as a stream. */
  readonly bytes: Stream.Stream<Uint8Array, UpstreamFailure>
  /** The whole body at once, which is cheaper; empty where it cannot be read. For bodies whose announced length is small. */
  readonly text: Effect.Effect<string>
  /** From now on silence of this many milliseconds ends the body as if it were complete: nothing of worth may follow. */
  readonly settle: (millis: number) => void
}

/** What went wrong below HTTP: the client's own limit for connecting, or the network. */
const transport = (phase: FailurePhase) => (error?: HttpClientError.HttpClientError) =>
  new UpstreamFailure({ phase, kind: isConnectTimeout(error?.reason.cause) ? "timeout" : "transport" })

const isConnectTimeout = (cause: unknown): boolean =>
  typeof cause === "object" && cause !== null && Reflect.get(cause, "code") === "UND_ERR_CONNECT_TIMEOUT"

const timedOut = (phase: FailurePhase) => new UpstreamFailure({ phase, kind: "timeout" })

/**
 * Sends a request and gives its reply once the head is there. The scope holds the connection: closing it aborts what is not
 * complete. A complete exchange is left alone, so that its connection serves the next one.
 */
export const openConnection = Effect.fnUntraced(function*(
  client: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest,
  phase: FailurePhase,
  limits: ConnectionLimits,
  budget?: Budget
): Effect.fn.Return<Connection, UpstreamFailure, Scope.Scope> {
  const clock = yield* Clock.Clock
  const connection = yield* Scope.make()
  let limit = limits.firstByte
  let waitingSince: number | undefined = monotonicMillis(clock)
  let complete = false
  let expired = false
  /** It was the request's own time that was up. */
  let isOverdue: Overdue | undefined
  let settled = false
  /** The watchdog sleeps by the longer limit: one of its own watches the wait for what may follow a settled body. */
  let settling = false
  const scope = yield* Effect.scope
  yield* Effect.addFinalizer((exit) => complete ? Effect.void : Scope.close(connection, exit))

  const outOfTime = (phase: FailurePhase): UpstreamFailure =>
    isOverdue === undefined || budget === undefined ? timedOut(phase) : budget.overdue(phase, isOverdue)
  const answered = () => {
    if (waitingSince !== undefined) budget?.addWaiting(monotonicMillis(clock) - waitingSince)
    waitingSince = undefined
  }

  const watch = Effect.gen(function*() {
    for (;;) {
      const left = waitingSince === undefined ? limit : waitingSince + limit - monotonicMillis(clock)
      const request = waitingSince === undefined ? undefined : budget?.timeLeft(monotonicMillis(clock) - waitingSince)
      const wait = Math.min(left, request?.millis ?? left)
      if (wait > 0) {
        yield* Effect.sleep(Math.min(Math.ceil(wait), limits.firstByte))
        continue
      }
      if (request !== undefined && request.millis <= 0) isOverdue = request.of
      expired = true
      return yield* Scope.close(connection, Exit.void)
    }
  })
  yield* Effect.forkScoped(watch)

  const response = yield* HttpClient.withScope(client).execute(request).pipe(
    Scope.provide(connection),
    Effect.mapError((error) => expired ? outOfTime(phase) : transport(phase)(error))
  )
  answered()

  const pull = Effect.map(Stream.toPull(response.stream), (body): BytesPull => {
    const next = Effect.suspend(() => {
      waitingSince = monotonicMillis(clock)
      const left = budget?.timeLeft(0)
      // Bytes that are always there at once leave the watchdog no turn.
      if (left !== undefined && left.millis <= 0) return Effect.fail(budget!.overdue("stream", left.of))
      return Effect.matchCauseEffect(body, {
        onSuccess: (chunks): Effect.Effect<Arr.NonEmptyReadonlyArray<Uint8Array>> => {
          answered()
          if (!settled) limit = limits.silence
          return Effect.succeed(chunks)
        },
        onFailure: (cause): Effect.Effect<never, UpstreamFailure | Cause.Done<void>> => {
          answered()
          if (expired) {
            return settled && isOverdue === undefined ? Cause.done() : Effect.fail(outOfTime("stream"))
          }
          if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
          if (!Pull.isDoneCause(cause)) return Effect.fail(transport("stream")())
          complete = true
          return Cause.done()
        }
      })
    })
    return Effect.suspend(() => {
      if (!settled || settling) return next
      settling = true
      return Effect.andThen(Effect.forkIn(watch, scope), next)
    })
  })
  const text = Effect.suspend(() => {
    waitingSince = monotonicMillis(clock)
    return Effect.match(response.text, {
      onSuccess: (body) => {
        complete = true
        return body
      },
      onFailure: () => ""
    })
  })
  return {
    response,
    pull,
    bytes: Stream.scoped(Stream.fromPull(pull)),
    text,
    settle: (millis) => {
      // A shorter limit than the one that is watched needs a watchdog that wakes in time.
      if (!settled || millis < limit) settling = false
      settled = true
      limit = millis
    }
  }
})

/** A decoder of a whole body: network chunks in, what they decide out. */
export interface BodyDecoder<A> extends Machine<Uint8Array, A> {
  /** What the body failed with; what was decoded before it still counts. */
  readonly failure: () => UpstreamFailure | undefined
  /** Nothing more is wanted of the body. */
  readonly done: () => boolean
  /** The body is as good as complete: a connection that breaks now does no harm. */
  readonly complete: () => boolean
}

/** Runs a decoder over a body that is being read: one array a network chunk. */
export const decodePull = <A>(
  pull: BytesPull,
  decoder: BodyDecoder<A>
): Pull.Pull<Arr.NonEmptyReadonlyArray<A>, UpstreamFailure> => {
  let ended = false
  const emit = (out: Array<A>): Pull.Pull<Arr.NonEmptyReadonlyArray<A>, UpstreamFailure> =>
    Arr.isArrayNonEmpty(out) ? Effect.succeed(out) : next
  const end = (out: Array<A>) => {
    ended = true
    decoder.end(out)
    return emit(out)
  }
  const next: Pull.Pull<Arr.NonEmptyReadonlyArray<A>, UpstreamFailure> = Effect.suspend(() => {
    if (ended || decoder.failure() !== undefined) {
      const failure = decoder.failure()
      return failure === undefined ? Cause.done() : Effect.fail(failure)
    }
    return Effect.matchCauseEffect(pull, {
      onSuccess: (chunks) => {
        const out: Array<A> = []
        for (const chunk of chunks) decoder.push(chunk, out)
        return decoder.done() ? end(out) : emit(out)
      },
      onFailure: (cause) => decoder.complete() || Pull.isDoneCause(cause) ? end([]) : Effect.failCause(cause)
    })
  })
  return next
}

/** Runs a decoder over a connection's body. */
export const decodeBody = <A>(connection: Connection, start: () => BodyDecoder<A>): Stream.Stream<A, UpstreamFailure> =>
  Stream.scoped(Stream.fromPull(Effect.map(connection.pull, (pull) => decodePull(pull, start()))))

/** Bodies up to this many bytes are read at once. */
const smallBody = 64 * 1024

/** Reads a body of at most `most` bytes; silence of `millis` ends it. Never fails: what cannot be read is empty. */
export const readBody = (connection: Connection, most: number, millis: number): Effect.Effect<string> =>
  Number(connection.response.headers["content-length"]) <= Math.min(most, smallBody)
    ? connection.text
    : readShortBody(connection, most, millis)

/** Reads a small body as text, at most `most` bytes of it, within the time limit. Never fails: what cannot be read is empty. */
export const readShortBody = (connection: Connection, most: number, millis: number): Effect.Effect<string> => {
  const chunks: Array<Uint8Array> = []
  let size = 0
  return connection.bytes.pipe(
    Stream.takeUntil((chunk) => {
      size += chunk.length
      return size >= most
    }),
    Stream.runForEach((chunk) => Effect.sync(() => chunks.push(chunk))),
    Effect.timeoutOption(millis),
    Effect.ignore,
    Effect.map(() => new TextDecoder().decode(Buffer.concat(chunks).subarray(0, most)))
  )
}

/** The three forms of a date in HTTP (RFC 9110 5.6.7). */
const httpDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? [A-Za-z0-9 :-]{14,24}(?: GMT)?$/

/**
 * Seconds that a `Retry-After` header asks for (RFC 9110 10.2.3), as a number of up to 10 digits or a date, within 1 and 600;
 * anything else says nothing. `now` is the wall clock's, in milliseconds.
 */
export const parseRetryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined || header.length > 100) return undefined
  const text = header.trim()
  const clamp = (seconds: number) => Math.min(600, Math.max(1, Math.ceil(seconds)))
  if (/^\d{1,10}$/.test(text)) return clamp(Number(text))
  const date = httpDate.test(text) ? Date.parse(text.endsWith("GMT") ? text : `${text} GMT`) : Number.NaN
  return Number.isNaN(date) ? undefined : clamp((date - now) / 1000)
}
