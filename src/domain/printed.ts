/**
 * Texts of others in lines that people read and paste: names of models, keys and addresses may have any characters.
 */

/** What a terminal or an editor acts on in place of showing it: control and format characters, and the separators of lines. */
const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** A text for one line: what cannot be seen is shown as U+FFFD. */
export const inLine = (text: string): string => text.replaceAll(unseen, "\uFFFD")

const hex = (code: number, digits: number): string => code.toString(16).padStart(digits, "0")

/** JSON with every unseen character as an escape, but for the ends of its lines. */
const escaped = (json: string): string =>
  json.replaceAll(
    unseen,
    (character) =>
      character === "\n"
        ? character
        : Array.from({ length: character.length }, (_, i) => `\\u${hex(character.charCodeAt(i), 4)}`).join("")
  )

/** A value as JSON whose strings have every unseen character as an escape. */
export const shownJson = (value: unknown, space?: number): string => escaped(JSON.stringify(value, undefined, space))

/** A basic string of TOML, with every unseen character as an escape: https://toml.io/en/v1.0.0#string. */
export const tomlText = (text: string): string =>
  JSON.stringify(text.toWellFormed()).replaceAll(unseen, (character) => `\\U${hex(character.codePointAt(0)!, 8)}`)

/** True for a text that every shell takes as it is. */
export const isPlainWord = (text: string): boolean => /^[\w@+:,./-]+$/.test(text)

/**
 * A text as one word for a shell, without characters that cannot be seen. Between single quotes, fish reads a backslash as POSIX shells do not, so
 * it stands between double quotes, as a single quote does.
 */
export const shellWord = (text: string): string =>
  isPlainWord(text) ? text : `'${inLine(text).replaceAll(/['\\]/g, (mark) => `'"${mark === "\\" ? "\\\\" : mark}"'`)}'`

/** A value as JSON in single quotes for a shell. It has no single quote of its own, so that its backslashes end nothing in fish either. */
export const shellJson = (value: unknown, space?: number): string =>
  `'${shownJson(value, space).replaceAll("'", "\\u0027")}'`

/** A text that is JSON as `shellJson` has a value. Its numbers and the order of its members stay as they are. */
export const shellJsonText = (json: string): string =>
  `'${escaped(json.replaceAll(/[\t\r]/g, " ")).replaceAll("'", "\\u0027")}'`

/**
 * A configuration of opencode, which replaces `{env:NAME}` and `{file:PATH}` anywhere in its text before it reads it as JSON
 * (https://opencode.ai/docs/config/#variables). Names of models would be sent with what they stand for, so that their braces are escapes.
 */
export const opencodeText = (config: unknown): string => shownJson(config, 2).replaceAll(/\{(?=env:|file:)/g, "\\u007b")

/** A CSV cell. A leading quote keeps spreadsheets from running the text as a formula. */
const csvText = (text: string): string => {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll(`"`, `""`)}"` : safe
}

/** A line of CSV. */
export const csvLine = (cells: ReadonlyArray<string>): string => `${cells.map(csvText).join(",")}\r\n`
