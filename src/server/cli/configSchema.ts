/**
 * `config-schema`: the JSON Schema of the configuration file, for editors.
 */
import * as Command from "effect/cli/Command"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { configJsonSchema } from "../../config/document.ts"

export const configSchemaCommand = Command.make(
  "config-schema",
  {},
  () => Effect.suspend(() => Console.log(JSON.stringify(configJsonSchema(), null, 2)))
).pipe(
  Command.withDescription(
    "Print the JSON Schema of the configuration file; name it in the file's $schema for completion"
  )
)
