/**
 * Output of commands. A reader that has had enough (`| head`) ends the command, and is no failure.
 */
import * as Effect from "effect/Effect"
import type * as PlatformError from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"

const isBrokenPipe = (error: unknown): boolean =>
  Predicate.isTagged(error, "PlatformError") && Predicate.hasProperty(error, "reason") &&
  Predicate.hasProperty(error.reason, "cause") && Predicate.hasProperty(error.reason.cause, "code") &&
  error.reason.cause.code === "EPIPE"

/** Writes bytes or text to the standard output as they come. */
export const print = <E, R>(
  output: Stream.Stream<string | Uint8Array, E, R>
): Effect.Effect<void, E | PlatformError.PlatformError, R | Stdio.Stdio> =>
  Effect.flatMap(Stdio.Stdio, (stdio) => Stream.run(output, stdio.stdout({ endOnDone: false }))).pipe(
    Effect.catchIf(isBrokenPipe, () => Effect.void)
  )

/** Writes lines. */
export const printLines = <E, R>(lines: Stream.Stream<string, E, R>) => print(Stream.map(lines, (line) => `${line}\n`))
