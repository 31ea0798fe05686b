/** The tables of what becomes of each field of a request. */
import { ignorableFields } from "../../src/contracts/shared/chatFields.ts"
import type { Family, Fields, Kinds, Row as FieldRow } from "../../src/contracts/shared/Family.ts"
import { code, type Row, table } from "./table.ts"

/** Where the first row with the same contents stands, in the table that is being made. */
let seen = new Map<unknown, string>()

/** The rows of one field and of what it contains. Elements of lists have rows for what the gateway does not read. */
const rowsOf = (path: string, name: string, field: FieldRow, isElement: boolean): ReadonlyArray<Row> => {
  const contents = field.items ?? field.kinds ?? field.fields
  const first = isElement ? seen.get(contents) : undefined
  if (contents !== undefined && first !== undefined) return [[code(path), field.fate, `As ${code(first)}.`]]
  seen.set(contents, path)
  const { as, fate, fields, items, kinds, local, required, whole, why } = field
  const said = [
    as === undefined ? undefined : `Sent as ${code(as)}.`,
    local === true && fate === "reported" ? "Sent to no server." : undefined,
    required === true ? "Refused where it is not sent." : undefined,
    fate === "passed" ? ignorableFields.get(name) : undefined,
    why?.replace(/^./, (letter) => letter.toUpperCase()).replace(/\.?$/, ".")
  ].filter((text) => text !== undefined).join(" ")
  const shown = whole === true ? "translated" : fate
  const isPlain = isElement && shown === "supported" && said === ""
  return [
    ...(isPlain ? [] : [[code(path), shown, said]]),
    ...(fields === undefined ? [] : fieldRows(fields, `${path}.`, isElement)),
    ...(kinds === undefined ? [] : kindRows(path, kinds, isElement, false)),
    ...(items?.fields === undefined ? [] : fieldRows(items.fields, `${path}[].`, true)),
    ...(items?.kinds === undefined ? [] : kindRows(path, items.kinds, true, true))
  ]
}

/** The rows of an object's kinds. Kinds with the same table share their rows. */
const kindRows = (path: string, { rows }: Kinds, isElement: boolean, isList: boolean): ReadonlyArray<Row> => {
  const names = new Map<FieldRow, Array<string>>()
  for (const [kind, row] of rows) names.set(row, [...names.get(row) ?? [], kind])
  return [...names].flatMap(([row, kinds]) => {
    const named = kinds.filter((kind) => kind !== "").join("/")
    const kind = isList || named !== "" ? `[${named}]` : ""
    return rowsOf(path + kind, "", row, isElement)
  })
}

/** The rows of a family's table; `path` is the object that the fields belong to. */
const fieldRows = (fields: Fields, path = "", isElement = false): ReadonlyArray<Row> =>
  [...fields].flatMap(([name, row]) => rowsOf(path + name, name, row, isElement))

/** The table of a family. */
export const fidelityTable = ({ fields }: Pick<Family, "fields">): string => {
  seen = new Map()
  return table(["field", "what happens to it", ""], fieldRows(fields))
}
