/**
 * The vendor's tools that the caller runs: `bash_*`, `text_editor_*`, `memory_*` and `computer_*`. The vendor's models know their
 * arguments; for other models they are declared with the arguments that the vendor documents. Calls are `tool_use` blocks of their name.
 */
import type { JsonSchema } from "../../domain/Conversation.ts"
import type { Json } from "../../domain/json.ts"

/** The description and parameters of a tool. */
interface ClientTool {
  readonly description: string
  readonly parameters: JsonSchema
}

/** The fields of a declaration that change what is declared. */
interface Options {
  readonly display_width_px?: number | null
  readonly display_height_px?: number | null
}

const text = (description: string): Json => ({ type: "string", description })
const integers = (count: number, description: string): Json => ({
  type: "array",
  items: { type: "integer" },
  minItems: count,
  maxItems: count,
  description
})
const words = (names: ReadonlyArray<string>, description: string): Json => ({
  type: "string",
  enum: names,
  description
})

const parameters = (properties: { readonly [name: string]: Json }, required: ReadonlyArray<string>): JsonSchema => ({
  type: "object",
  properties,
  required
})

const bash: ClientTool = {
  description: "Runs a command in a bash session that keeps its state, and returns the output.",
  parameters: parameters({
    command: text("The command. Required unless restart is true."),
    restart: { type: "boolean", description: "True restarts the session." }
  }, [])
}

const path = text("The path of the file or directory.")
const viewRange = integers(2, "For view: the first and last line, from 1; -1 is the end of the file.")

/** The last version whose editor can undo and inserts `new_str`. */
const firstEditors = 20250124

const textEditor = (version: number): ClientTool => {
  const isFirst = version <= firstEditors
  return {
    description: "Views, creates and edits text files.",
    parameters: parameters({
      command: words(["view", "create", "str_replace", "insert", ...(isFirst ? ["undo_edit"] : [])], "The command."),
      path,
      file_text: text("For create: the content of the file."),
      old_str: text("For str_replace: the text to replace. It must be unique in the file."),
      new_str: text(isFirst ? "For str_replace and insert: the new text." : "For str_replace: the new text."),
      insert_line: { type: "integer", description: "For insert: the line after which to insert; 0 is the beginning." },
      ...(isFirst ? {} : { insert_text: text("For insert: the text to insert.") }),
      view_range: viewRange
    }, ["command", "path"])
  }
}

const memory: ClientTool = {
  description: "Reads and writes files in the directory /memories, which stay between conversations.",
  parameters: parameters({
    command: words(["view", "create", "str_replace", "insert", "delete", "rename"], "The command."),
    path: text("The path of the file or directory, except for rename."),
    view_range: viewRange,
    file_text: text("For create: the content of the file."),
    old_str: text("For str_replace: the text to replace. It must be unique in the file."),
    new_str: text("For str_replace: the new text."),
    insert_line: { type: "integer", description: "For insert: the line after which to insert; 0 is the beginning." },
    insert_text: text("For insert: the text to insert."),
    old_path: text("For rename: the present path."),
    new_path: text("For rename: the new path.")
  }, ["command"])
}

const firstActions = ["key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click"]
const laterActions = ["left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "triple_click"]

const computer = (version: number, { display_height_px: height, display_width_px: width }: Options): ClientTool => {
  const display = width && height ? ` The display has ${width} × ${height} pixels.` : ""
  const isLater = version >= 20250124
  return {
    description: `Controls the mouse and the keyboard of a computer, and takes screenshots.${display}`,
    parameters: parameters({
      action: words([
        ...firstActions,
        "double_click",
        "screenshot",
        "cursor_position",
        ...(isLater ? laterActions : []),
        ...(version >= 20251124 ? ["zoom"] : [])
      ], "The action."),
      coordinate: integers(2, "The x and y pixels, for actions of the mouse."),
      text: text("For type the text, for key and hold_key the keys, such as ctrl+s."),
      ...(isLater
        ? {
          start_coordinate: integers(2, "For left_click_drag: where it starts."),
          scroll_direction: words(["up", "down", "left", "right"], "For scroll."),
          scroll_amount: { type: "integer", description: "For scroll: the number of clicks." },
          duration: { type: "number", description: "For hold_key and wait: seconds." }
        }
        : {}),
      ...(version >= 20251124 ? { region: integers(4, "For zoom: the left, top, right and bottom pixels.") } : {})
    }, ["action"])
  }
}

const versioned = /^(bash|text_editor|memory|computer)_(\d{8})$/

/** The declaration of a tool of this type, and the name that the vendor gives it; `undefined` for tools that the vendor runs. */
export const clientTool = (
  type: string,
  options: Options
): (ClientTool & { readonly name: string }) | undefined => {
  const [, kind, date] = versioned.exec(type) ?? []
  const version = Number(date)
  switch (kind) {
    case "bash":
      return { name: "bash", ...bash }
    case "text_editor":
      return {
        name: version <= firstEditors ? "str_replace_editor" : "str_replace_based_edit_tool",
        ...textEditor(version)
      }
    case "memory":
      return { name: "memory", ...memory }
    case "computer":
      return { name: "computer", ...computer(version, options) }
    default:
      return undefined
  }
}
