/** Texts of others in lines that are pasted into a shell or saved in a file of a client. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { spawnSync } from "node:child_process"
import {
  inLine,
  isPlainWord,
  opencodeText,
  shellJson,
  shellJsonText,
  shellWord,
  shownJson,
  tomlText
} from "../../src/domain/printed.ts"

const unseen = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u

/** What a POSIX shell makes of words. */
const wordsOf = (line: string): ReadonlyArray<string> =>
  spawnSync("sh", ["-c", `printf '%s\\0' ${line}`], { encoding: "utf8" }).stdout.split("\0").slice(0, -1)

/** What fish reads in single and double quotes, and between them: https://fishshell.com/docs/current/language.html#quotes. */
const fishWord = (word: string): string => {
  const single = /'((?:\\[\\']|[^'])*)'/y
  const double = /"((?:\\[\\"$]|[^"$])*)"/y
  let read = ""
  for (let at = 0; at < word.length;) {
    const found = [single, double].map((quoted) => {
      quoted.lastIndex = at
      return quoted.exec(word)
    }).find((match) => match !== null)
    if (found === undefined) throw new Error(`unquoted at ${at}: ${word}`)
    read += found[1]!.replaceAll(/\\([\\'"$])/g, "$1")
    at += found[0].length
  }
  return read
}

const text = fc.string({
  unit: fc.oneof(fc.constantFrom(..."'\"\\$`!~{}()\n\t ;&|"), fc.string({ unit: "binary", minLength: 1, maxLength: 1 }))
})
  .filter((text) => !text.includes("\0") && text.isWellFormed())

describe("texts of others in printed lines", () => {
  it("are one word for a POSIX shell, without what cannot be seen", () => {
    const words = fc.sample(text, { numRuns: 300, seed: 7 })
    assert.deepStrictEqual(wordsOf(words.map(shellWord).join(" ")), words.map(inLine))
  })

  it("are one word for fish too", () => {
    fc.assert(fc.property(text, (text) => {
      const word = shellWord(text)
      if (!isPlainWord(text)) assert.strictEqual(fishWord(word), inLine(text))
    }))
    assert.strictEqual(fishWord(shellWord("\\'; touch /tmp/x; '\\")), "\\'; touch /tmp/x; '\\")
  })

  it("stay unquoted only where no shell gives them a meaning", () => {
    for (const plain of ["gpt-4.1", "org/model:7b", "https://host:1/v1", "a@b+c,d_e"]) {
      assert.strictEqual(shellWord(plain), plain)
    }
    for (const other of ["", "$(id)", "`id`", "a b", "~", "*", "=ls", "a#b", "a!b", "{a,b}", "é"]) {
      assert.isFalse(isPlainWord(other))
    }
  })

  it("are JSON and TOML with every unseen character escaped", () => {
    fc.assert(fc.property(text, (text) => {
      for (const json of [shownJson({ text }), opencodeText({ text })]) {
        assert.deepStrictEqual(JSON.parse(json), { text })
        assert.notMatch(json.replaceAll("\n", ""), unseen)
      }
      assert.notMatch(tomlText(text), unseen)
    }))
    assert.strictEqual(tomlText("a\u007f\u{e0020}\n"), String.raw`"a\U0000007f\U000e0020\n"`)
  })

  it("are JSON for a shell", () => {
    const values = fc.sample(text, { numRuns: 100, seed: 9 })
    assert.deepStrictEqual(
      wordsOf(values.map((text) => shellJson({ text })).join(" ")).map((word) => JSON.parse(word).text),
      values
    )
  })

  it("are JSON for a shell as it was written: with its numbers, its order and its lines", () => {
    const values = fc.sample(text, { numRuns: 100, seed: 11 })
    assert.deepStrictEqual(
      wordsOf(values.map((text) => shellJsonText(JSON.stringify({ text }))).join(" ")).map((word) =>
        JSON.parse(word).text
      ),
      values
    )
    const written = `{ "b": 1.0,\n\t"a": 12345678901234567890, "it's": "\u{200b}" }`
    assert.deepStrictEqual(wordsOf(shellJsonText(written)), [
      String.raw`{ "b": 1.0,` + "\n " + String.raw`"a": 12345678901234567890, "it\u0027s": "\u200b" }`
    ])
  })

  it("name no variable and no file of opencode", () => {
    const config = { model: "{env:SECRET}", "{file:~/.ssh/id}": 1 }
    assert.notMatch(opencodeText(config), /\{(?:env|file):/)
    assert.deepStrictEqual(JSON.parse(opencodeText(config)), config)
  })
})
