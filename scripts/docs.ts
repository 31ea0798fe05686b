// `npm run docs`: writes the reference tables in docs. A table stands between two comments:
//
//     <!-- made by `npm run docs`: NAME -->
//     <!-- end -->
//
// Each table is made from the definition that the gateway itself runs on. The text around the tables is written by hand.
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import type { HelpDoc } from "effect/cli/HelpDoc"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Option from "effect/Option"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { settingsFields } from "../src/admin/settings/fields.ts"
import { decodeConfig } from "../src/config/decodeConfig.ts"
import { Environment } from "../src/config/Environment.ts"
import { noticeTypes } from "../src/domain/notices.ts"
import { GatewayApi } from "../src/server/Api.ts"
import { gateway } from "../src/server/cli/commands.ts"
import { families } from "../src/styles/families.ts"
import { faultTable } from "../src/testing/provider/faults.ts"
import { directives } from "../src/testing/provider/script.ts"
import { clients } from "./clients.ts"
import { errorCodes, upstreamFailures } from "./docs/errors.ts"
import { exportTables } from "./docs/exports.ts"
import { fidelityTable } from "./docs/fidelity.ts"
import { limitsTable } from "./docs/limits.ts"
import { code, table } from "./docs/table.ts"
import { faultOutcomes, serverOutcomes } from "./faultOutcomes.ts"

const folder = path.join(import.meta.dirname, "../docs")

const units = [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const

type Field = ReturnType<typeof settingsFields>[number]

/** A number of a setting. Sizes are in binary units. */
const readable = ({ path }: Field, value: number): string => {
  const unit = path.endsWith("bytes") ? units.find(([, size]) => value >= size && value % size === 0) : undefined
  return unit === undefined ? value.toLocaleString("en-US") : `${value / unit[1]} ${unit[0]}`
}

const defaultOf = (field: Field): string => {
  const { default: value } = field
  if (value === null || value === "") return ""
  return typeof value === "number" ? readable(field, value) : code(JSON.stringify(value))
}

const valuesOf = (field: Field): string => {
  const { choices, maximum, minimum, type } = field
  if (choices !== null) {
    const words = choices.map((choice) => code(JSON.stringify(choice)))
    return [...words, ...(type === "choice" ? [] : [type])].join(", ")
  }
  if (minimum !== null && maximum !== null) return `${readable(field, minimum)} to ${readable(field, maximum)}`
  return type === "map" ? "object" : type === "lines" ? "text" : type
}

const fields = async (): Promise<ReadonlyArray<Field>> =>
  settingsFields({}, (await Effect.runPromise(decodeConfig({}, { duplicates: "refuse" }))).snapshot.config)

const isLimit = ({ path }: Field): boolean => path.startsWith("limits.")

const settings = (include: (field: Field) => boolean) => async (): Promise<string> =>
  table(
    ["setting", "default", "values", "meaning"],
    (await fields()).filter(include).map((field) => [
      code(field.path),
      defaultOf(field),
      valuesOf(field),
      field.description
    ])
  )

/** The meaning of a variable that `Environment` reads, and the field of `Environment` that has its default. */
const variables: Readonly<Record<string, readonly [meaning: string, field?: keyof typeof Environment.Service]>> = {
  PORT: ["Port to listen on. `0` takes any free port.", "port"],
  HOST: ["Address to listen on. A container needs `0.0.0.0`.", "host"],
  GATEWAY_CONFIG_PATH: ["Configuration file.", "configPath"],
  GATEWAY_DATA_DIR: [
    "Folder of the gateway's own files, such as the usage history. Unset: `data` beside the configuration file, if there is a configuration file."
  ],
  GATEWAY_CONFIG_JSON: ["The configuration itself, as JSON or as Base64 of JSON. It replaces the file."],
  GATEWAY_CONFIG_WRITEBACK: ["Whether changes to such a configuration are saved to the file.", "configWriteback"],
  GATEWAY_LOCKED: [
    "Whether the admin API and the console [may not change](../operate/admin-access.md#locked-configuration) the configuration.",
    "locked"
  ],
  GATEWAY_ADMIN_KEY: ["Admin key. Unset: the gateway generates one at each start and prints it."],
  GATEWAY_ADMIN_KEY_PREVIOUS: ["The previous admin key, for `GATEWAY_STORE_KEY_PREVIOUS=derived`."],
  GATEWAY_STORE_URL: ["Store that [several nodes](../operate/nodes.md) share."],
  GATEWAY_STORE_KEY: [
    "Encrypts all data in the store. 16 characters or more, the same on all nodes. Unset: derived from the admin key."
  ],
  GATEWAY_STORE_KEY_PREVIOUS: [
    "Previous key, accepted for decryption during a key change. `derived`: the key derived from the admin key."
  ],
  GATEWAY_STORE_TIMEOUT_MS: ["Time limit of one store command, 50 to 1,500. Unset: 250."],
  GATEWAY_NODE_ID: [
    "Name of the node in log lines, traces and `/admin/nodes`. Unset: the host name and six random digits."
  ],
  GATEWAY_WORKERS: [
    "Number of [processes that serve on one port](../operate/workers.md). Two and more need a store. `auto`: the number of cores.",
    "workers"
  ],
  GATEWAY_LOG_LEVEL: ["Minimum log level.", "logLevel"],
  HOST_TOKEN: ["Hosting platform: token of its API."],
  HOST_PROJECT_ID: ["Hosting platform: project whose configuration is synced."],
  HOST_TEAM_ID: ["Hosting platform: team of the project."],
  HOST_API_URL: ["Hosting platform: address of its API."],
  GATEWAY_RELEASES_URL: ["Document of the latest release, in the form of GitHub's API."],
  GATEWAY_SECRET_DIRS: [
    "Folders whose files `${file:…}` in the configuration may name, with commas between. Unset: none."
  ],
  GATEWAY_REFERENCES: [
    "Variables that `${NAME}` in the configuration may name, such as `HOSTED_KEY, UPSTREAM_*`. Unset: all but the gateway's own (`GATEWAY_…`, `HOST_…`, `OTEL_…`, `HOST` and `PORT`), which no list allows."
  ]
}

/** Reads the environment with one value for every variable. Returns the names it asked for, and its faults by name. */
const readEnvironment = (value: string | undefined) => {
  const names = new Set<string>()
  const provider = ConfigProvider.make((path) =>
    Effect.sync(() => {
      names.add(path.join("_"))
      return value === undefined ? undefined : ConfigProvider.makeValue(value)
    })
  )
  return Environment.make.pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, provider),
    Effect.result,
    Effect.map((result) => ({ names, result }))
  )
}

/** The rule of each variable is the fault that the gateway finds in a text that no rule allows. */
const environment = () =>
  Effect.gen(function*() {
    const { names, result: defaults } = yield* readEnvironment(undefined)
    const { result: refused } = yield* readEnvironment("?")
    if (defaults._tag === "Failure" || refused._tag === "Success") {
      throw new Error("The environment has no such defaults.")
    }
    const faults = new Map(
      refused.failure.message.split("\n").map((line) => {
        const [name = "", ...rule] = line.split(" ")
        return [name, rule.join(" ").replace(/^must be /, "")]
      })
    )
    const rows = [...names].map((name) => {
      const variable = variables[name]
      if (variable === undefined) throw new Error(`scripts/docs.ts does not describe ${name}`)
      const [meaning, field] = variable
      return [
        code(name),
        field === undefined ? "" : code(String(defaults.success[field])),
        faults.get(name) ?? "",
        meaning
      ]
    })
    const gone = Object.keys(variables).filter((name) => !names.has(name))
    if (gone.length > 0) throw new Error(`scripts/docs.ts describes variables that the gateway does not read: ${gone}`)
    return table(["variable", "default", "values", "meaning"], rows)
  }).pipe(Effect.runPromise)

const methods = ["get", "post", "put", "patch", "delete"] as const

/** The endpoints of the groups that `include` selects, one table a group. */
const endpoints = (include: (tag: string) => boolean) => (): string => {
  const { paths, tags } = OpenApi.fromApi(GatewayApi)
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    methods.flatMap((method) => {
      const operation = item[method]
      return operation === undefined ? [] : [{ path, method, operation }]
    })
  )
  return tags.filter(({ name }) => include(name)).map(({ description = "", name }) => {
    const rows = operations.filter(({ operation }) => operation.tags.includes(name)).map(
      ({ method, operation, path }) => {
        const query = operation.parameters.filter((parameter) => parameter.in === "query").map((parameter) =>
          parameter.name
        )
        const said = [operation.summary, operation.description].filter((text) => text !== undefined && text !== "")
          .map((text) => text!.replace(/\.?$/, "."))
        return [code(`${method.toUpperCase()} ${path}`), said.join(" "), query.map(code).join(", ")]
      }
    )
    return `### ${description.replace("Operators: ", "").replace(/^./, (letter) => letter.toUpperCase())}\n\n${
      table(["endpoint", "", "query"], rows)
    }`
  }).join("\n\n")
}

/** What `model-gateway COMMAND --help` says, as data. */
const helpOf = async (command: ReadonlyArray<string>): Promise<HelpDoc> => {
  let found: HelpDoc | undefined
  const presenter: CliOutput.Presenter = {
    present: (event) =>
      Effect.sync(() => {
        if (event._tag === "Help") found = event.helpDoc
      })
  }
  await Command.runWith(gateway, { version: "" })([...command, "--help"]).pipe(
    Effect.provide([NodeServices.layer, CliOutput.layerPresenter(presenter)]),
    Effect.runPromise
  )
  if (found === undefined) throw new Error(`${command} has no help`)
  return found
}

const options = ({ args = [], flags }: Pick<HelpDoc, "args" | "flags">): string => {
  const rows = [
    ...args.map(({ description, name }) => [code(name), Option.getOrElse(description, () => "")]),
    ...flags.map(({ aliases, description, name, type }) => [
      [`--${name}`, ...aliases].map(code).join(", ") + (type === "boolean" ? "" : ` ${type}`),
      Option.getOrElse(description, () => "")
    ])
  ]
  return rows.length === 0 ? "" : `\n\n${table(["option", "meaning"], rows)}`
}

/** The commands below a path; a command with subcommands stands for them. */
const commandsBelow = async (path: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  const help = await helpOf(path)
  const names = (help.subcommands ?? []).flatMap(({ commands }) => commands.map(({ name }) => name))
  if (names.length === 0) return [`### ${path.join(" ")}\n\n${help.description}.\n\n    ${help.usage}${options(help)}`]
  return (await Promise.all(names.map((name) => commandsBelow([...path, name])))).flat()
}

const commands = async (): Promise<string> => {
  const root = await helpOf([])
  const parts = await commandsBelow([])
  return [...parts, `### Options of every command${options({ flags: root.globalFlags ?? [] })}`].join("\n\n")
}

const vendorFields = Object.fromEntries(
  families.map((family) => [`fields of ${family.name}`, () => fidelityTable(family)])
)

const isAdmin = (tag: string): boolean => tag.startsWith("admin-") || tag === "health" || tag === "metrics"

const tables: Readonly<Record<string, () => string | Promise<string>>> = {
  "settings of the admin API": settings((field) => field.writable),
  "settings of the file": settings((field) => !field.writable && !isLimit(field)),
  limits: settings(isLimit),
  "events of webhooks": () =>
    table(
      ["event", "when", "data"],
      Object.entries(noticeTypes).map(([type, { data, when }]) => [code(type), when, data.map(code).join(", ")])
    ),
  environment,
  commands,
  "admin endpoints": endpoints(isAdmin),
  directives: () =>
    table(["line", "effect"], Object.values(directives).map(({ about, syntax }) => [code(syntax), about])),
  faults: async () => {
    const seen = await faultOutcomes()
    return table(
      ["fault", "effect", "what the caller sees"],
      faultTable.map(({ about, name }) => [code(name), about, seen.get(name)!])
    )
  },
  "server answers": async () => table(["answer", "what the caller sees"], await serverOutcomes()),
  "tried clients": () =>
    table(
      ["client", "tried with", "API", "configuration"],
      clients.map(({ api, files, name, package: of, shell, version }) => [
        name,
        `${code(of)} ${version}`,
        api,
        [...Object.keys(files).map(code), ...shell === undefined ? [] : ["environment"]].join(", ")
      ])
    ),
  "error codes": errorCodes,
  "upstream failures": upstreamFailures,
  "client endpoints": endpoints((tag) => !isAdmin(tag)),
  "limits of contracts": limitsTable,
  "exports of index": exportTables("index", true),
  ...Object.fromEntries(
    ["api", "console", "contracts", "pool", "sieve", "styles", "testing", "transducer"]
      .map((entry) => [`exports of ${entry}`, exportTables(entry)])
  ),
  ...vendorFields
}

const block = /^(<!-- made by `npm run docs`: ([\w ]+) -->\n)[^]*?^(<!-- end -->)$/gm

const withTables = async (text: string): Promise<string> => {
  const made = new Map<string, string>()
  for (const [, , name = ""] of text.matchAll(block)) {
    const make = tables[name]
    if (make === undefined) throw new Error(`there is no table ${name}`)
    made.set(name, await make())
  }
  return text.replace(block, (_, start: string, name: string, end: string) => `${start}\n${made.get(name)!}\n\n${end}`)
}

/** The pages that have tables, by their paths in docs, each as it is and as it should be. */
export const documents = async () => {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"))
    .map((name) => name.replaceAll(path.sep, "/"))
  const files = await Promise.all(names.map(async (name) => {
    const text = readFileSync(path.join(folder, name), "utf8")
    return {
      file: path.join(folder, name),
      name,
      text,
      made: await withTables(text),
      tables: text.match(block)?.length ?? 0
    }
  }))
  return files.filter((file) => file.tables > 0)
}

if (import.meta.main) {
  for (const { file, made } of await documents()) writeFileSync(file, made)
}
