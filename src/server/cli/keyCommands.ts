/** The command `keys hash`. */
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { makeConfigFile } from "../../config/ConfigFile.ts"
import { Environment } from "../../config/Environment.ts"
import { guessableKey, hashKeys } from "../../config/hashedKeys.ts"
import { parseConfig, stringifyConfig } from "../../config/json.ts"
import { CommandFailed, count, writtenConfig } from "./commandParts.ts"

const keysHashCommand = Command.make(
  "hash",
  {},
  Effect.fnUntraced(function*() {
    const file = yield* makeConfigFile(yield* writtenConfig)
    const { guessable, hashed } = yield* file.exclusively(Effect.gen(function*() {
      const content = yield* file.read
      if (Option.isNone(content)) return yield* new CommandFailed({ message: `${file.path}: there is no such file` })
      const { raw, ...counts } = hashKeys(yield* parseConfig(file.path, content.value.text))
      if (counts.hashed > 0) yield* file.replace(yield* stringifyConfig(raw, "indented"))
      return counts
    }))
    for (const id of guessable) yield* Console.log(`warning: ${guessableKey(id)}`)
    yield* Console.log(`${file.path}: ${count(hashed, "key")} hashed, ${guessable.length} kept as text`)
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription(
    "Replace the gateway keys of the configuration file by their hashes; prints those that can be guessed from one"
  )
)

export const keysCommand = Command.make("keys").pipe(
  Command.withDescription("Gateway keys"),
  Command.withSubcommands([keysHashCommand])
)
