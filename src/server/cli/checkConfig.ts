/**
 * `check-config`: whether the gateway would start with a configuration, and if not, every fault with its place.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { Environment } from "../../config/Environment.ts"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { FaultyConfig, readConfig } from "./readConfig.ts"

const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`

const summary = ({ accounts, configured_keys, upstream }: GatewayConfig): string =>
  `${upstream.driver} upstream, ${count(accounts.length, "account")}, ${count(configured_keys.length, "key")}`

const path = Argument.Path("path").pipe(
  Argument.withDescription("Configuration file (else what GATEWAY_CONFIG_JSON or GATEWAY_CONFIG_PATH says)"),
  Argument.optional
)

const strict = Flag.Boolean("strict").pipe(
  Flag.withDescription("Fail for warnings too, such as fields that are not known"),
  Flag.withDefault(false)
)

export const checkConfigCommand = Command.make(
  "check-config",
  { path, strict },
  Effect.fnUntraced(function*({ path, strict }) {
    const { config, exists, source, warnings } = yield* readConfig(path)
    for (const warning of warnings) yield* Console.error(`${source}: ${warning}`)
    if (strict && warnings.length > 0) {
      return yield* new FaultyConfig({
        message: `${source}: ${count(warnings.length, "warning")}, and --strict is set`
      })
    }
    yield* Console.log(`${source}: ${exists ? "valid" : "no such file; the defaults hold"} (${summary(config)})`)
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription("Check a configuration: prints every fault with its place, and fails if there is one")
)
