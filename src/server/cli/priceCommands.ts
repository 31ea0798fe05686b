/** The commands `prices import` and `prices check`. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Clock from "effect/Clock"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { makeConfigFile } from "../../config/ConfigFile.ts"
import { Environment } from "../../config/Environment.ts"
import { type PriceChange, readPrices, savePrices } from "../../config/importPrices.ts"
import { parseConfig } from "../../config/json.ts"
import { beatenPrice, pricedTargets } from "../../config/pricedTargets.ts"
import { readRegularFile } from "../../config/regularFile.ts"
import { priceStart } from "../../config/schema.ts"
import { answerer } from "../../contracts/drivers.ts"
import { inLine } from "../../domain/printed.ts"
import {
  CommandFailed,
  configArgument,
  count,
  faulty,
  longestPriceFile,
  print,
  readConfig,
  writtenConfig
} from "./commandParts.ts"

/** The prices of a name before and after, or all prices of a new one. */
const priceLine = ({ after, before, name }: PriceChange): string => {
  if (before === undefined) {
    return `new      ${name}: ${Array.from(after, ([place, amount]) => `${place} ${amount}`).join(", ")}`
  }
  const places = [...new Set([...before.keys(), ...after.keys()])]
  const changed = places.filter((place) => before.get(place) !== after.get(place))
    .map((place) => `${place} ${before.get(place) ?? "none"} -> ${after.get(place) ?? "none"}`)
  return `changed  ${name}: ${changed.join(", ")}`
}

const pricesImportCommand = Command.make(
  "import",
  {
    file: Argument.Path("file").pipe(Argument.withDescription("JSON object of models with their prices")),
    dryRun: Flag.Boolean("dry-run").pipe(
      Flag.withDescription("Print the difference, and write nothing"),
      Flag.withDefault(false)
    ),
    from: Flag.String("from").pipe(
      Flag.withDescription("Day, or RFC 3339 time, from which the prices apply (default: immediately)"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function*({ dryRun, file, from }) {
    const configPath = yield* writtenConfig
    const begins = Option.getOrUndefined(from)
    if (begins !== undefined && priceStart(begins) === undefined) {
      return yield* new CommandFailed({
        message: "--from must be a day, such as 2027-01-31, or an RFC 3339 time with its zone"
      })
    }
    const bytes = yield* Effect.mapError(
      readRegularFile(file, longestPriceFile),
      ({ message }) => new CommandFailed({ message })
    )
    const { placeless, prices, taken, unpriced } = yield* parseConfig(file, bytes.toString()).pipe(
      Effect.mapError(() => new CommandFailed({ message: `${file} is not a JSON object` })),
      Effect.flatMap(readPrices)
    )
    if (taken === 0) return yield* new CommandFailed({ message: `${file} has no prices` })
    const target = yield* makeConfigFile(configPath)
    const now = yield* Clock.currentTimeMillis
    const { changes, unchanged } = yield* savePrices(target, prices, { now, from: begins, isTrial: dryRun }).pipe(
      Effect.catchTag("ConfigInvalid", (error) => Effect.fail(faulty(target.path, error)))
    )
    const fresh = changes.filter(({ before }) => before === undefined).length
    const lines = changes.map((change) => inLine(priceLine(change)))
    if (placeless.size > 0) {
      const fields = Array.from(placeless, ([field, entries]) => `${field} (${entries})`)
      lines.push(`without a place, with the number of entries: ${inLine(fields.join(", "))}`)
    }
    lines.push(
      `${target.path}: ${fresh} new, ${changes.length - fresh} changed, ${unchanged} unchanged${
        dryRun ? ", nothing written" : ""
      }; ${unpriced} without a price left out`
    )
    yield* print(Stream.succeed(`${lines.join("\n")}\n`))
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription(
    "Import model prices from a file in the format of LiteLLM's model_prices_and_context_window.json; prints the difference"
  )
)

const pricesCheckCommand = Command.make(
  "check",
  {
    path: configArgument
  },
  Effect.fnUntraced(function*({ path }) {
    const { config, raw, source } = yield* readConfig(path)
    // The embedded answerer costs nothing.
    const now = yield* Clock.currentTimeMillis
    const targets = pricedTargets(raw, config, now)
      .filter(({ upstream }) => config.upstreams.get(upstream)?.driver !== answerer)
    const gaps = targets.filter(({ listed, missing }) => listed === null && missing.length > 0)
    for (const { listed, missing, name, price, target } of targets) {
      const asked = name === target || target.endsWith(`/${name}`) ? target : `${name}, ${target}`
      if (listed === null && missing.length === 0) continue
      const lacks = missing.length === 0 ? "" : ` lacks ${missing.join(", ")}`
      yield* Console.log(inLine(`${asked}: ${price === null ? "no price" : `${price}${lacks}`}`))
    }
    for (const each of targets) {
      const beaten = beatenPrice(config, each, now)
      if (beaten !== undefined) {
        yield* Console.log(
          `warning: ${each.name}, ${each.target}: the price of ${each.price} counts before that of ${beaten}, the server's own name; ` +
            `set prices.${each.target} to the one that is right`
        )
      }
    }
    if (gaps.length > 0) {
      return yield* new CommandFailed({
        message: `${source}: ${gaps.length} of ${count(targets.length, "target")} lack prices`
      })
    }
    yield* Console.log(`${source}: every target has its prices`)
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription(
    "Print the targets that lack prices, and those with a list price or a price of another name; exits 1 if one lacks prices"
  )
)

export const pricesCommand = Command.make("prices").pipe(
  Command.withDescription("Prices of models"),
  Command.withSubcommands([pricesImportCommand, pricesCheckCommand])
)
