// `npm run release`: builds everything that is published, from the commit alone and without a network. The files are checked first; the
// output folder appears complete or not at all.
import { createHash } from "node:crypto"
import { chmodSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import path from "node:path"
import { parseArgs, promisify } from "node:util"
import { gzip } from "node:zlib"
import { noticesOf, type Package } from "../bundle/packages.ts"
import { buildInside, makeExecutable, tryExecutable } from "./executables.ts"
import {
  checkChangelog,
  commitName,
  type Facts,
  isoDate,
  isoTime,
  locked,
  manifest,
  readFacts,
  root,
  shortCommit
} from "./facts.ts"
import { makeImage } from "./image.ts"
import { findNode, platforms, runsHere } from "./nodes.ts"
import { buildPackage } from "./npmPackage.ts"
import { chartArchive, stampTexts } from "./packaging.ts"
import { makeSbom } from "./sbom.ts"
import { tar } from "./tar.ts"

interface Options {
  readonly out: string
  readonly url: string
  readonly image: string
  readonly nodes: string | undefined
  readonly all: boolean
}

/** A file of the release. */
interface Published {
  readonly path: string
  readonly kind: "npm" | "chart" | "text" | "executable" | "image" | "sbom" | "notices"
  readonly content: Uint8Array
  readonly platform?: string
  /** True for an executable for macOS, which must be signed before it runs. */
  readonly signed?: false
}

interface Skipped {
  readonly platform: string
  readonly reason: string
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

const zipped = (bytes: Uint8Array): Promise<Buffer> => promisify(gzip)(bytes, { level: 9 })

const say = (text: string) => console.error(text)

/** Throws if the license of a package is unknown. */
const checkTerms = (packages: ReadonlyArray<Package>): void => {
  for (const { license, name, text, version } of packages) {
    if (license === "unknown" || text === "") throw new Error(`${name} ${version} comes without a license text`)
  }
}

const nodeVersion = (): string => {
  const versions = new Set(platforms.map(({ node }) => locked[`node_modules/${node}`]?.version))
  const [version] = versions
  if (versions.size !== 1 || version === undefined) throw new Error("the lock file names several versions of Node")
  return version
}

const make = async (options: Options, facts: Facts, node: string) => {
  const origin = { commit: commitName(facts), date: isoDate(facts) }
  const published: Array<Published> = []
  const skipped: Array<Skipped> = []
  const base = `${manifest.name}-${facts.version}`

  say("Building the package and the service…")
  const [{ files, service: { packages } }, inside] = await Promise.all([
    buildPackage(origin, "best"),
    buildInside(origin, "best")
  ])
  checkTerms(packages)

  const entries = [...files].map(([name, content]) => ({
    path: `package/${name}`,
    content,
    mode: name === "dist/cli.js" || name === "dist/reference.js" ? 0o755 : 0o644
  }))
  const npm = await zipped(tar(entries, facts.time))
  published.push({ path: `${base}.tgz`, kind: "npm", content: npm })

  const texts = stampTexts({
    VERSION: facts.version,
    URL: `${options.url.replace(/\/+$/, "")}/${base}.tgz`,
    SHA256: sha256(npm),
    IMAGE: options.image
  })
  for (const [name, text] of texts) {
    published.push({ path: `packaging/${name}`, kind: "text", content: Buffer.from(text) })
  }
  published.push({ path: `${base}-chart.tgz`, kind: "chart", content: await chartArchive(texts, facts.time) })

  const found = platforms.map((platform) => ({ platform, node: findNode(platform, options.nodes) }))
  // The Node packages have the same license, but not every one contains it.
  const license = found.flatMap(({ node }) => "license" in node && node.license !== undefined ? [node.license] : [])[0]
  if (license === undefined) throw new Error("no package of Node on this machine contains its license")
  const contained = [...packages, { name: "node", version: node, license: "MIT", text: license.trim() }]
  const notices = noticesOf(contained)
  for (const { node, platform } of found) {
    if ("reason" in node) {
      skipped.push({ platform: platform.name, reason: node.reason })
      continue
    }
    say(`Making the executable for ${platform.name}…`)
    const content = await makeExecutable(platform, node.program, notices, inside)
    published.push({
      path: `${base}-${platform.name}${platform.suffix}`,
      kind: "executable",
      content,
      platform: platform.name,
      ...(platform.machine.format === "mach-o" ? { signed: false } : {})
    })
    if (platform.name !== "linux-x64") continue
    if (!runsHere(platform)) {
      skipped.push({ platform: "linux/amd64", reason: "the image takes its libraries from a machine of its kind" })
      continue
    }
    say("Making the image…")
    const image = await makeImage(content, notices, facts)
    for (const [name, part] of image) published.push({ path: `oci/${name}`, kind: "image", content: part })
    const parts = [...image].map(([name, part]) => ({ path: name, content: part }))
    published.push({
      path: `${base}-oci.tar`,
      kind: "image",
      content: tar([...parts, { path: "blobs" }, { path: "blobs/sha256" }], facts.time)
    })
  }
  published.push({ path: `${base}.cdx.json`, kind: "sbom", content: Buffer.from(makeSbom(packages, node, facts)) })
  published.push({ path: "THIRD_PARTY_LICENSES.txt", kind: "notices", content: Buffer.from(notices) })
  return { published: published.toSorted((a, b) => a.path < b.path ? -1 : 1), skipped }
}

/** The description of the release. */
const describe = (
  facts: Facts,
  node: string,
  published: ReadonlyArray<Published>,
  skipped: ReadonlyArray<Skipped>
): string => {
  const { dirty, version } = facts
  const files = published.map(({ content, ...file }) => ({ ...file, bytes: content.length, sha256: sha256(content) }))
  const document = {
    name: manifest.name,
    version,
    commit: shortCommit(facts),
    dirty,
    date: isoTime(facts),
    node,
    files,
    skipped
  }
  return `${JSON.stringify(document, undefined, 2)}\n`
}

const write = (folder: string, name: string, content: Uint8Array | string) => {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true })
  writeFileSync(path.join(folder, name), content)
}

/** Reads all files back. Throws on a wrong checksum, a missing file or an additional file. */
const checkSums = (folder: string): void => {
  const lines = readFileSync(path.join(folder, "SHA256SUMS"), "utf8").trimEnd().split("\n")
  const named = new Map(lines.map((line) => [line.slice(66), line.slice(0, 64)]))
  const there = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((file) => file !== "SHA256SUMS" && statSync(path.join(folder, file)).isFile())
  for (const file of there) {
    const name = file.replaceAll(path.sep, "/")
    if (named.get(name) !== sha256(readFileSync(path.join(folder, file)))) throw new Error(`${name}: wrong checksum`)
  }
  if (there.length !== named.size) throw new Error("a file that SHA256SUMS names is missing")
}

const release = async (options: Options): Promise<void> => {
  const facts = readFacts()
  checkChangelog(readFileSync(path.join(root, "CHANGELOG.md"), "utf8"), facts.version)
  const node = nodeVersion()
  const { published, skipped } = await make(options, facts, node)
  if (options.all && skipped.length > 0) {
    throw new Error(skipped.map(({ platform, reason }) => `${platform}: ${reason}`).join("\n"))
  }
  const folder = `${options.out}.${process.pid}.new`
  const old = `${options.out}.${process.pid}.old`
  try {
    for (const { content, kind, path: name } of published) {
      write(folder, name, content)
      if (kind === "executable") chmodSync(path.join(folder, name), 0o755)
    }
    const description = describe(facts, node, published, skipped)
    write(folder, "release.json", description)
    const sums = [
      ...published.map(({ content, path: name }) => `${sha256(content)}  ${name}`),
      `${sha256(Buffer.from(description))}  release.json`
    ]
    write(folder, "SHA256SUMS", `${sums.sort((a, b) => a.slice(66) < b.slice(66) ? -1 : 1).join("\n")}\n`)
    checkSums(folder)
    const own = platforms.find(runsHere)
    const executable = published.find((file) => file.kind === "executable" && file.platform === own?.name)
    if (executable !== undefined) {
      say(`Trying the executable for ${own?.name}…`)
      await tryExecutable(path.join(folder, executable.path), facts.version)
    }
    if (statSync(options.out, { throwIfNoEntry: false }) !== undefined) renameSync(options.out, old)
    renameSync(folder, options.out)
  } finally {
    rmSync(folder, { recursive: true, force: true })
    rmSync(old, { recursive: true, force: true })
  }
  for (const { path: name } of published) if (!name.includes("/")) console.log(path.join(options.out, name))
  for (const { platform, reason } of skipped) say(`No executable for ${platform}: ${reason}`)
}

const defaultUrl = "https://releases.example"

try {
  const { values } = parseArgs({
    options: {
      out: { type: "string", default: "release" },
      url: { type: "string", default: defaultUrl },
      image: { type: "string", default: manifest.name },
      nodes: { type: "string" },
      all: { type: "boolean", default: false }
    }
  })
  await release({ ...values, out: path.resolve(values.out), nodes: values.nodes })
} catch (error) {
  say(error instanceof Error ? error.message : String(error))
  process.exitCode = 1
}
