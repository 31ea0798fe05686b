// The container image for linux/amd64, as an OCI image layout: the executable and its libraries, without a shell, a package manager or
// other programs.
import { createHash } from "node:crypto"
import { existsSync, readFileSync } from "node:fs"
import path from "node:path"
import { promisify } from "node:util"
import { gzip } from "node:zlib"
import { nodeVariables } from "../nodeFlags.ts"
import { needsOf } from "./binaries.ts"
import { type Facts, isoTime, manifest, revisionName } from "./facts.ts"
import { type Entry, tar } from "./tar.ts"

/** The user that the image runs as. */
const user = 65_532

const program = "/usr/local/bin/model-gateway"

const variables = Object.entries(nodeVariables).map(([name, value]) => `${name}=${value}`)

/** The image's run configuration. */
export const runConfig = {
  User: `${user}:${user}`,
  Env: ["HOST=0.0.0.0", "PORT=5001", "GATEWAY_CONFIG_PATH=/data/config.json", "GATEWAY_DATA_DIR=/data", ...variables],
  WorkingDir: "/data",
  Volumes: { "/data": {} },
  Entrypoint: [program],
  ExposedPorts: { "5001/tcp": {} },
  StopSignal: "SIGTERM",
  Healthcheck: { Test: ["CMD", program, "health"] }
} as const

/** Library folders of common distributions. */
const libraryFolders = [
  "/lib/x86_64-linux-gnu",
  "/usr/lib/x86_64-linux-gnu",
  "/lib64",
  "/usr/lib64",
  "/lib",
  "/usr/lib"
]

const findLibrary = (name: string): string => {
  const found = libraryFolders.map((folder) => path.posix.join(folder, name)).find((file) => existsSync(file))
  if (found === undefined) throw new Error(`${name}, which the executable needs, is not on this machine`)
  return found
}

/** The files that an executable needs, transitively, by the paths where the loader looks. */
const librariesOf = (executable: Buffer): ReadonlyMap<string, Buffer> => {
  const files = new Map<string, Buffer>()
  const visit = (bytes: Buffer) => {
    const { libraries, loader } = needsOf(bytes)
    for (const file of [...(loader === undefined ? [] : [loader]), ...libraries.map(findLibrary)]) {
      if (files.has(file)) continue
      const content = readFileSync(file)
      files.set(file, content)
      visit(content)
    }
  }
  visit(executable)
  return files
}

/** The license files of the libraries above. */
const libraryTerms = ["libc6", "libgcc-s1", "libstdc++6", "libatomic1"]

const licensesOf = (notices: string): Array<Entry> => [
  { path: "licenses/THIRD_PARTY_LICENSES.txt", content: Buffer.from(notices) },
  { path: "licenses/LICENSE", content: readFileSync(path.join(import.meta.dirname, "../../LICENSE")) },
  ...libraryTerms.map((name) => ({ name, file: `/usr/share/doc/${name}/copyright` })).filter(({ file }) =>
    existsSync(file)
  )
    .map(({ file, name }) => ({ path: `licenses/${name}.txt`, content: readFileSync(file) }))
]

/** All parent folders of the files, once each. */
const withFolders = (entries: ReadonlyArray<Entry>): ReadonlyArray<Entry> => {
  const all = new Map(entries.map((entry) => [entry.path, entry]))
  for (const { path: file } of entries) {
    for (let folder = path.posix.dirname(file); folder !== "."; folder = path.posix.dirname(folder)) {
      if (!all.has(folder)) all.set(folder, { path: folder })
    }
  }
  return [...all.values()]
}

const baseLayer = (executable: Buffer, notices: string): ReadonlyArray<Entry> =>
  withFolders([
    ...[...librariesOf(executable)].map(([file, content]) => ({ path: file.slice(1), content, mode: 0o755 })),
    { path: "etc/passwd", content: Buffer.from(`nonroot:x:${user}:${user}:nonroot:/data:/sbin/nologin\n`) },
    { path: "etc/group", content: Buffer.from(`nonroot:x:${user}:\n`) },
    { path: "tmp", mode: 0o1777 },
    { path: "data", mode: 0o700, owner: user },
    ...licensesOf(notices)
  ])

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

const mediaTypes = {
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
  index: "application/vnd.oci.image.index.v1+json"
} as const

/** The image's files by their paths in the OCI layout. */
export const makeImage = async (
  executable: Buffer,
  notices: string,
  facts: Facts
): Promise<ReadonlyMap<string, Uint8Array>> => {
  const files = new Map<string, Uint8Array>()
  const add = (mediaType: string, content: Uint8Array) => {
    const digest = sha256(content)
    files.set(`blobs/sha256/${digest}`, content)
    return { mediaType, digest: `sha256:${digest}`, size: content.length }
  }
  const json = (value: unknown) => Buffer.from(JSON.stringify(value))
  const layers = await Promise.all(
    [baseLayer(executable, notices), withFolders([{ path: program.slice(1), content: executable, mode: 0o755 }])].map(
      async (entries) => {
        const archive = tar(entries, facts.time)
        return { id: `sha256:${sha256(archive)}`, descriptor: add(mediaTypes.layer, await promisify(gzip)(archive)) }
      }
    )
  )
  const created = isoTime(facts)
  const config = add(
    mediaTypes.config,
    json({
      created,
      architecture: "amd64",
      os: "linux",
      config: {
        ...runConfig,
        Labels: {
          "org.opencontainers.image.title": manifest.name,
          "org.opencontainers.image.version": facts.version,
          "org.opencontainers.image.revision": revisionName(facts),
          "org.opencontainers.image.licenses": manifest.license,
          "org.opencontainers.image.created": created
        }
      },
      rootfs: { type: "layers", diff_ids: layers.map(({ id }) => id) },
      history: ["libraries", manifest.name].map((comment) => ({ created, comment }))
    })
  )
  const image = add(
    mediaTypes.manifest,
    json({
      schemaVersion: 2,
      mediaType: mediaTypes.manifest,
      config,
      layers: layers.map(({ descriptor }) => descriptor)
    })
  )
  const index = {
    schemaVersion: 2,
    mediaType: mediaTypes.index,
    manifests: [{
      ...image,
      platform: { architecture: "amd64", os: "linux" },
      annotations: { "org.opencontainers.image.ref.name": facts.version }
    }]
  }
  files.set("index.json", json(index))
  files.set("oci-layout", json({ imageLayoutVersion: "1.0.0" }))
  return files
}
