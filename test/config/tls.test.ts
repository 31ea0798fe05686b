import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll } from "vitest"
import type { Fault } from "../../src/config/ConfigError.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { readPemFiles, readTls, type TlsSettings } from "../../src/config/tls.ts"
import { makeAuthority } from "../support/certificates.ts"

const authority = makeAuthority()
const client = authority.sign("DNS:client")
const other = authority.sign("DNS:other")
const folder = mkdtempSync(path.join(tmpdir(), "tls-"))
afterAll(() => rmSync(folder, { recursive: true }))
const fileOf = (name: string, text: string) => {
  writeFileSync(path.join(folder, name), text)
  return path.join(folder, name)
}

const pipe = path.join(folder, "pipe")
execFileSync("mkfifo", [pipe])
const toDevice = path.join(folder, "to-device")
symlinkSync("/dev/zero", toDevice)

const read = async (settings: TlsSettings = {}) => {
  const faults: Array<Fault> = []
  const raw: RawConfig = JSON.parse(JSON.stringify({ upstreams: { x: { tls: settings } } }))
  const files = await Effect.runPromise(readPemFiles(raw))
  const tls = readTls(settings, "upstreams.x.tls", faults, files)
  return { tls, faults: faults.map(({ field }) => field), all: faults }
}

describe("the TLS of an upstream", () => {
  it("is the same from a text and from a file", async () => {
    const texts = await read({ ca: authority.cert, cert: client.cert, key: client.key, server_name: "inner.test" })
    const files = await read({
      ca: fileOf("ca.pem", authority.cert),
      cert: ` ${fileOf("cert.pem", client.cert)} `,
      key: fileOf("key.pem", client.key),
      server_name: "inner.test"
    })
    assert.deepStrictEqual(texts.faults, [])
    assert.isDefined(texts.tls?.id)
    assert.strictEqual(files.tls?.id, texts.tls?.id)
    assert.notStrictEqual((await read({ ca: authority.cert })).tls?.id, texts.tls?.id)
    assert.strictEqual(texts.tls?.serverName, "inner.test")
  })

  it("is absent without settings", async () => {
    for (const settings of [undefined, {}, { ca: " ", server_name: "" }]) {
      assert.deepStrictEqual(await read(settings), { tls: undefined, faults: [], all: [] })
    }
  })

  it("leaves the event loop free while a file is read", async () => {
    let turns = 0
    setImmediate(() => turns++)
    const { tls } = await read({ ca: fileOf("ca.pem", authority.cert) })
    assert.isDefined(tls)
    assert.strictEqual(turns, 1)
  })

  it.each<[string, TlsSettings, ReadonlyArray<string>]>([
    ["no such file", { ca: "/no/such/secret-file" }, ["ca"]],
    ["a folder", { ca: folder }, ["ca"]],
    ["a pipe", { ca: pipe }, ["ca"]],
    ["a device that never ends", { ca: "/dev/zero" }, ["ca"]],
    ["a link to a device", { ca: toDevice, cert: toDevice, key: pipe }, ["ca", "cert", "key"]],
    ["a file without PEM", { ca: fileOf("text", "secret text") }, ["ca"]],
    ["a file that is too long", { ca: fileOf("long", authority.cert + "x".repeat(1024 * 1024)) }, ["ca"]],
    ["a broken certificate", { ca: authority.cert.replace(/[A-Z]{3}/, "***") }, ["ca"]],
    ["a key in place of a certificate", { ca: client.key }, ["ca"]],
    ["a certificate in place of a key", { cert: client.cert, key: client.cert }, ["key"]],
    ["a certificate without a key", { cert: client.cert }, ["key"]],
    ["a key without a certificate", { key: client.key }, ["cert"]],
    ["the key of another certificate", { cert: client.cert, key: other.key }, ["key"]],
    ["an address as the name of a host", { server_name: "10.0.0.1" }, ["server_name"]],
    ["a name with a blank", { server_name: "a b" }, ["server_name"]]
  ])("with %s is a fault that quotes nothing", async (_, settings, fields) => {
    const { all, faults, tls } = await read(settings)
    assert.isUndefined(tls)
    assert.deepStrictEqual(faults, fields.map((field) => `upstreams.x.tls.${field}`))
    const messages = JSON.stringify(all)
    for (const text of ["secret", folder, "BEGIN", "10.0.0.1", "a b"]) assert.notInclude(messages, text)
  })
})
