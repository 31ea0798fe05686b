/**
 * The command that imports the configuration of another gateway. What it needs is loaded when it runs.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { makeConfigFile } from "../../../config/ConfigFile.ts"
import { stringifyConfig } from "../../../config/json.ts"
import { readRegularFile } from "../../../config/regularFile.ts"

/** Bytes of a file. Those of large installations have some hundred thousand. */
const longestFile = 4 * 1024 * 1024

export const importCommand = Command.make(
  "import",
  {
    gateway: Argument.Literals("gateway", ["litellm", "cliproxyapi"]).pipe(
      Argument.withDescription("The gateway whose configuration it is")
    ),
    file: Argument.Path("file").pipe(Argument.withDescription("Its configuration, in YAML or JSON")),
    out: Flag.Path("out").pipe(
      Flag.withAlias("o"),
      Flag.withDescription("File to write to, which must not exist (default: the standard output)"),
      Flag.optional
    ),
    strict: Flag.Boolean("strict").pipe(
      Flag.withDescription("Fail, and write nothing, if anything was left out"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ file, gateway, out, strict }) {
    const { ImportFailed, importText } = yield* Effect.promise(() => import("./importFile.ts"))
    const bytes = yield* readRegularFile(file, longestFile)
    const { raw, report } = yield* importText(gateway, file, bytes.toString(), (name) => process.env[name])
    if (report.lines.length > 0) yield* Console.error(report.lines.map((line) => `${file}: ${line}`).join("\n"))
    if (strict && report.left > 0) {
      return yield* new ImportFailed({ message: `${file}: parts of it were left out, and --strict is set` })
    }
    const text = yield* stringifyConfig(raw, "indented")
    if (Option.isNone(out)) return yield* Console.log(text.trimEnd())
    const target = yield* makeConfigFile(out.value)
    if (Option.isSome(yield* target.read)) {
      return yield* new ImportFailed({ message: `${target.path} already exists: name another file, or remove it` })
    }
    yield* target.replace(text)
  })
).pipe(
  Command.withDescription(
    "Convert the configuration of another gateway; lists on the standard error what it changes and leaves out"
  )
)
