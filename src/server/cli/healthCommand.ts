/**
 * `health` in the whole command line: for its help, and for what is wrong in its options.
 */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { askHealth, healthDefaults, report } from "./health.ts"

/** Why the answer is no. */
class NotHealthy extends Schema.TaggedError<NotHealthy>()("NotHealthy", { message: Schema.String }) {}

export const healthCommand = Command.make(
  "health",
  {
    url: Flag.String("url").pipe(
      Flag.withDescription("Base address of the gateway (else that of HOST and PORT)"),
      Flag.optional
    ),
    live: Flag.Boolean("live").pipe(
      Flag.withDescription("Whether it lives (/healthz), not whether it takes requests (/readyz)"),
      Flag.withDefault(false)
    ),
    timeout: Flag.Finite("timeout").pipe(
      Flag.withDescription("Seconds that an answer may take"),
      Flag.withDefault(healthDefaults.timeout)
    ),
    wait: Flag.Finite("wait").pipe(
      Flag.withDescription("Seconds to ask again until the answer is yes"),
      Flag.withDefault(healthDefaults.wait)
    )
  },
  Effect.fnUntraced(function*({ live, timeout, url, wait }) {
    const options = { url: Option.getOrUndefined(url), live, timeout, wait }
    const health = yield* Effect.promise(() => askHealth(options, process.env))
    if (health._tag === "No") return yield* new NotHealthy({ message: health.reason })
    report(health)
  })
).pipe(Command.withDescription("Ask a gateway whether it is ready; fails with a line that says why not"))
