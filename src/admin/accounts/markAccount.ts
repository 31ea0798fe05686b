/**
 * What an operator marks an account with: that it is kept out of use, and a note.
 */
import type * as Schema from "effect/Schema"
import { setField } from "../../config/edit.ts"
import type { RawConfig } from "../../config/json.ts"

export interface Marks {
  readonly disabled?: boolean | undefined
  readonly note?: string | undefined
}

const set = (entry: RawConfig, field: string, value: Schema.Json | undefined): RawConfig =>
  entry[field] === value ? entry : setField(entry, [field], value)

/** The entry with these marks; what is at its default is not written. The same object where nothing changes. */
export const markAccount = (entry: RawConfig, { disabled, note }: Marks): RawConfig => {
  const switched = disabled === undefined || disabled === (entry["disabled"] === true)
    ? entry
    : set(entry, "disabled", disabled || undefined)
  return note === undefined ? switched : set(switched, "note", note === "" ? undefined : note)
}
