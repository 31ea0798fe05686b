/**
 * The command that starts a reference upstream on a socket and says where it listens.
 */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { make } from "./Reference.ts"

const optionalInt = (name: string, about: string) => Flag.Int(name).pipe(Flag.withDescription(about), Flag.optional)

export const referenceFlags = {
  port: Flag.Int("port").pipe(Flag.withDescription("Port, or 0 for any free one"), Flag.withDefault(5100)),
  host: Flag.String("host").pipe(Flag.withDescription("Address to listen on"), Flag.withDefault("127.0.0.1")),
  pace: optionalInt("pace", "Milliseconds before every event"),
  burst: optionalInt("burst", "Events in one network write"),
  maxRunning: optionalInt("max-running", "Most running completions of an account"),
  tokenLifetime: optionalInt("token-lifetime", "Milliseconds after which a token has expired"),
  remember: optionalInt("remember", "Requests that the report shows"),
  keepAlive: optionalInt("keep-alive", "Milliseconds that an idle connection stays open")
}

/** What the flags say. */
export type ReferenceFlags = Command.Command.Config.Infer<typeof referenceFlags>

/** Listens until it is interrupted; prints one line once it does. */
export const runReference = (
  { burst, host, keepAlive, maxRunning, pace, port, remember, tokenLifetime }: ReferenceFlags
) =>
  Effect.gen(function*() {
    const reference = yield* make({
      pace: Option.getOrUndefined(pace),
      burst: Option.getOrUndefined(burst),
      maxRunning: Option.getOrUndefined(maxRunning),
      tokenLifetime: Option.getOrUndefined(tokenLifetime),
      remember: Option.getOrUndefined(remember),
      keepAlive: Option.getOrUndefined(keepAlive)
    })
    const url = yield* reference.listen({ port, host })
    yield* Console.log(`The reference upstream listens on ${url}`)
    return yield* Effect.never
  }).pipe(Effect.scoped)

/** `reference --port N`. */
export const referenceCommand = Command.make("reference", referenceFlags, runReference).pipe(
  Command.withDescription("Run a reference upstream that speaks the session protocol")
)
