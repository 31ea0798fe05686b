/** The commands `models show` and `models import`. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stdio from "effect/Stdio"
import * as Stream from "effect/Stream"
import { makeConfigFile } from "../../config/ConfigFile.ts"
import { Environment } from "../../config/Environment.ts"
import { parseConfig } from "../../config/json.ts"
import { readRegularFile } from "../../config/regularFile.ts"
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

/** Reads the file at a path, or the standard input for `-`. */
const readFileOrInput = Effect.fnUntraced(function*(file: string, most: number) {
  if (file !== "-") {
    return yield* Effect.mapError(readRegularFile(file, most), ({ message }) => new CommandFailed({ message }))
  }
  const stdio = yield* Stdio.Stdio
  let length = 0
  const parts = yield* Stream.runCollect(
    Stream.takeWhile(stdio.stdin, (part) => (length += part.length) <= most)
  )
  if (length > most) {
    return yield* new CommandFailed({ message: `the standard input has more than ${most / 1024 ** 2} MiB` })
  }
  return Buffer.concat(Array.from(parts))
})

const modelsImportCommand = Command.make(
  "import",
  {
    file: Argument.String("file").pipe(
      Argument.withDescription(
        "JSON in the format of models.dev or of model_prices_and_context_window.json; - for standard input"
      )
    )
  },
  Effect.fnUntraced(function*({ file }) {
    const configPath = yield* writtenConfig
    const { readModelFacts, saveModelFacts } = yield* Effect.promise(() => import("../../config/importModelFacts.ts"))
    const bytes = yield* readFileOrInput(file, longestPriceFile)
    const { facts, left } = yield* parseConfig(file, bytes.toString()).pipe(
      Effect.mapError(() => new CommandFailed({ message: `${file} is not a JSON object` })),
      Effect.flatMap(readModelFacts)
    )
    if (facts.size === 0) return yield* new CommandFailed({ message: `${file} has no facts about models` })
    const target = yield* makeConfigFile(configPath)
    yield* saveModelFacts(target, facts).pipe(
      Effect.catchTag("ConfigInvalid", (error) => Effect.fail(faulty(target.path, error)))
    )
    yield* Console.log(
      `${target.path}: facts of ${count(facts.size, "model")} taken, ${
        left === 1 ? "1 entry" : `${left} entries`
      } without facts or with a name before them left out`
    )
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription("Import facts about models from a file into model_facts of the configuration file")
)

const modelsShowCommand = Command.make(
  "show",
  {
    path: configArgument,
    form: Flag.Literals("for", ["codex", "openrouter"]).pipe(
      Flag.withDescription("Print JSON for codex (model_catalog_json) or in the format of OpenRouter"),
      Flag.optional
    )
  },
  Effect.fnUntraced(function*({ form, path }) {
    const { raw } = yield* readConfig(path)
    const { shownModels } = yield* Effect.promise(() => import("./models.ts"))
    const { findings, text } = yield* shownModels(raw, Option.getOrUndefined(form))
    for (const finding of findings) yield* Console.error(finding)
    if (text === undefined) {
      return yield* new CommandFailed({
        message: "clients.codex_instructions is not set: codex would run without instructions"
      })
    }
    yield* print(Stream.make(text))
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription("Print the models with their facts and the sources of these; asks each server for its list")
)

export const modelsCommand = Command.make("models").pipe(
  Command.withDescription("Models and their facts"),
  Command.withSubcommands([modelsShowCommand, modelsImportCommand])
)
