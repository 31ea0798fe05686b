/**
 * The vendor's own tools that the caller runs: shells, patches, a computer, and a search for tools. They are declared as functions with
 * the arguments that the vendor documents, and a call of such a function is an item of the vendor's own type.
 */
import type { JsonSchema } from "../../domain/Conversation.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"

/** The tools, by the `type` of their declaration. */
export type ClientToolType = "local_shell" | "shell" | "apply_patch" | "computer" | "tool_search"

/** One of the vendor's tools. */
interface ClientTool {
  /** The type of the item that is a call. */
  readonly item: string
  /** The prefix of the item's id. */
  readonly prefix: string
  readonly description: string
  readonly parameters: JsonSchema
  /** The fields of the item, from the arguments that a model wrote. `text` is their JSON. */
  readonly fields: (args: JsonRecord, text: string) => string
  /** The arguments of an item of the history. `undefined` without the field that has them. */
  readonly arguments: (item: JsonRecord) => JsonRecord | undefined
}

const texts = { type: "array", items: { type: "string" } } as const
const text = (description: string) => ({ type: "string", description }) as const
const count = (description: string) => ({ type: "integer", description }) as const

const parameters = (properties: JsonSchema, required: ReadonlyArray<string>): JsonSchema => ({
  type: "object",
  properties,
  required,
  additionalProperties: false
})

const textOf = (value: unknown): string | undefined => typeof value === "string" ? value : undefined
const numberOf = (value: unknown): number | null => typeof value === "number" ? value : null

const listOf = (value: unknown): ReadonlyArray<unknown> =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]

const textsOf = (value: unknown): ReadonlyArray<string> => listOf(value).flatMap((each) => textOf(each) ?? [])

/** The fields that have a value. */
const given = (fields: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null))

const only = (fields: JsonRecord, names: ReadonlyArray<string>): JsonRecord =>
  given(Object.fromEntries(names.map((name) => [name, fields[name]])))

const within = (name: string, names: ReadonlyArray<string>) => (item: JsonRecord): JsonRecord | undefined => {
  const inner = item[name]
  return isRecord(inner) ? only(inner, names) : undefined
}

const localShellFields = ["command", "env", "timeout_ms", "user", "working_directory"]
const shellFields = ["commands", "timeout_ms", "max_output_length"]
const patchFields = ["type", "path", "diff"]

const operation = (args: JsonRecord): JsonRecord => {
  const sent = isRecord(args["operation"]) ? args["operation"] : args
  const path = textOf(sent["path"]) ?? ""
  if (sent["type"] === "delete_file") return { type: "delete_file", path }
  const type = sent["type"] === "create_file" ? "create_file" : "update_file"
  return { type, path, diff: textOf(sent["diff"]) ?? "" }
}

const actions = (sent: JsonRecord): ReadonlyArray<JsonRecord> => {
  const list = listOf(sent["actions"] ?? sent["action"]).filter(isRecord)
  return list.length === 0 && typeof sent["type"] === "string" ? [sent] : list
}

const number = (value: unknown): number => typeof value === "number" ? value : 0

const buttons = ["left", "right", "wheel", "back", "forward"]

/** An action with all fields that its type has. Actions of unknown types have none, so no client can run them. */
const action = (sent: JsonRecord): ReadonlyArray<JsonRecord> => {
  const { button, keys, path, scroll_x, scroll_y, text, type, x, y } = sent
  const at = { type, x: number(x), y: number(y) }
  const held = keys === undefined || keys === null ? {} : { keys: textsOf(keys) }
  switch (type) {
    case "click":
      return [{ ...at, button: buttons.find((each) => each === button) ?? "left", ...held }]
    case "double_click":
      return [{ ...at, keys: null, ...held }]
    case "move":
      return [{ ...at, ...held }]
    case "scroll":
      return [{ ...at, scroll_x: number(scroll_x), scroll_y: number(scroll_y), ...held }]
    case "drag":
      return [{
        type,
        path: listOf(path).filter(isRecord).map(({ x, y }) => ({ x: number(x), y: number(y) })),
        ...held
      }]
    case "keypress":
      return [{ type, keys: textsOf(keys) }]
    case "type":
      return [{ type, text: textOf(text) ?? "" }]
    case "screenshot":
    case "wait":
      return [{ type }]
    default:
      return []
  }
}

/** A point of a path. */
const point = {
  type: "object",
  properties: { x: { type: "integer" }, y: { type: "integer" } },
  required: ["x", "y"]
} as const

export const clientTools: { readonly [type in ClientToolType]: ClientTool } = {
  local_shell: {
    item: "local_shell_call",
    prefix: "lsh",
    description: "Runs a command on the user's machine and returns its output.",
    parameters: parameters({
      command: { ...texts, description: "The program and its arguments, such as [\"bash\", \"-lc\", \"ls\"]." },
      env: { type: "object", additionalProperties: { type: "string" }, description: "Environment variables." },
      timeout_ms: count("The longest run time in milliseconds."),
      user: text("The user who runs the command."),
      working_directory: text("The directory in which the command runs.")
    }, ["command"]),
    fields: (args) => {
      const { command, env } = args
      const action = {
        type: "exec",
        command: typeof command === "string" ? ["bash", "-lc", command] : textsOf(command),
        env: isRecord(env) ? Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])) : {},
        ...given({
          timeout_ms: numberOf(args["timeout_ms"]),
          user: textOf(args["user"]),
          working_directory: textOf(args["working_directory"])
        })
      }
      return `"action":${JSON.stringify(action)}`
    },
    arguments: within("action", localShellFields)
  },
  shell: {
    item: "shell_call",
    prefix: "sh",
    description: "Runs commands in a shell on the user's machine and returns their output.",
    parameters: parameters({
      commands: { ...texts, description: "The commands." },
      timeout_ms: count("The longest run time in milliseconds."),
      max_output_length: count("The most characters of output to return.")
    }, ["commands"]),
    fields: (args) => {
      const action = {
        commands: textsOf(args["commands"] ?? args["command"]),
        timeout_ms: numberOf(args["timeout_ms"]),
        max_output_length: numberOf(args["max_output_length"])
      }
      return `"action":${JSON.stringify(action)},"environment":{"type":"local"}`
    },
    arguments: within("action", shellFields)
  },
  apply_patch: {
    item: "apply_patch_call",
    prefix: "apc",
    description: "Creates, changes or deletes a file on the user's machine.",
    parameters: parameters({
      type: { type: "string", enum: ["create_file", "update_file", "delete_file"] },
      path: text("The path of the file."),
      diff: text(
        "The changes in the V4A format, except for delete_file. A new file has a + before every line. A changed file has sections: a " +
          "line that starts with @@ and may name where the section is, then lines with a space (kept), - (removed) or + (added) before them."
      )
    }, ["type", "path"]),
    fields: (args) => `"operation":${JSON.stringify(operation(args))}`,
    arguments: within("operation", patchFields)
  },
  computer: {
    item: "computer_call",
    prefix: "cu",
    description: "Controls the mouse and the keyboard of a computer. Returns a screenshot.",
    parameters: parameters({
      actions: {
        type: "array",
        description: "The actions, in order.",
        items: {
          type: "object",
          properties: {
            type: {
              type: "string",
              enum: ["click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"]
            },
            x: count("For click, double_click, move and scroll."),
            y: count("For click, double_click, move and scroll."),
            button: { type: "string", enum: buttons, description: "For click." },
            keys: { ...texts, description: "For keypress; for others the keys that are held." },
            path: { type: "array", items: point, description: "For drag." },
            scroll_x: count("For scroll."),
            scroll_y: count("For scroll."),
            text: text("For type.")
          },
          required: ["type"]
        }
      }
    }, ["actions"]),
    fields: (args) => {
      const list = actions(args).flatMap(action)
      const first = list.length === 1 ? `"action":${JSON.stringify(list[0])},` : ""
      return `${first}"actions":${JSON.stringify(list)},"pending_safety_checks":[]`
    },
    arguments: (item) => ({ actions: actions(item) })
  },
  tool_search: {
    item: "tool_search_call",
    prefix: "tsc",
    description: "Searches for tools that can be called afterwards.",
    parameters: parameters({ query: text("What the tool is needed for.") }, ["query"]),
    fields: (_, args) => `"arguments":${args},"execution":"client"`,
    arguments: (item) => isRecord(item["arguments"]) ? item["arguments"] : undefined
  }
}

/** The tool whose calls are items of this type. */
const byItem = new Map(
  Object.entries(clientTools).map(([type, { item }]) => [item, type as ClientToolType])
)

/** The tool that an item of the history calls. */
export const calledTool = (itemType: string): ClientToolType | undefined => byItem.get(itemType)

const environmentType = ({ environment }: JsonRecord): unknown =>
  isRecord(environment) ? environment["type"] : undefined

/** The tool that a declaration declares, if the caller runs it. */
export const clientToolOf = (tool: JsonRecord): ClientToolType | undefined => {
  switch (tool["type"]) {
    case "local_shell":
    case "apply_patch":
    case "computer":
      return tool["type"]
    case "computer_use_preview":
      return "computer"
    case "shell":
      return (environmentType(tool) ?? "local") === "local" ? "shell" : undefined
    case "tool_search":
      return tool["execution"] === "client" ? "tool_search" : undefined
    default:
      return undefined
  }
}

/** The names by which a choice may force the tool. */
export const choiceTypesOf = (type: ClientToolType): ReadonlyArray<string> =>
  type === "computer" ? ["computer", "computer_use", "computer_use_preview"] : [type]

/** Facts of a computer that its declaration states. */
const display = ({ display_height, display_width, environment }: JsonRecord): string =>
  [
    typeof display_width === "number" && typeof display_height === "number"
      ? ` Its display has ${display_width} × ${display_height} pixels.`
      : "",
    typeof environment === "string" ? ` Its environment is ${environment}.` : ""
  ].join("")

/** The description and parameters with which a tool is declared. The caller states those of a search for tools. */
export const clientDeclaration = (
  type: ClientToolType,
  tool: JsonRecord
): { readonly description: string; readonly parameters: JsonSchema } => {
  const { description, parameters } = clientTools[type]
  if (type === "computer") return { description: description + display(tool), parameters }
  if (type !== "tool_search") return { description, parameters }
  const own = tool["parameters"]
  return {
    description: textOf(tool["description"]) ?? description,
    parameters: isRecord(own) ? own as JsonSchema : parameters
  }
}

/** The commands of a shell's call, for the events of a stream. */
export const shellCommands = (args: JsonRecord): ReadonlyArray<string> => textsOf(args["commands"] ?? args["command"])
