/** Backups of a machine's files, and of what nodes share in a store. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import { currentVersion } from "../../admin/system/build.ts"
import { Environment } from "../../config/Environment.ts"
import { count } from "./commandParts.ts"

/** The store logs nothing but warnings, to the standard error. */
const quiet = Layer.mergeAll(
  Logger.layer([Logger.withConsoleError(Logger.formatSimple)]),
  Layer.succeed(References.MinimumLogLevel, "Warn" as const)
)

const backupFile = Argument.Path("file").pipe(
  Argument.withDescription("The backup: one file, encrypted with the store key")
)

const storeBackupCommand = Command.make(
  "backup",
  {
    file: backupFile,
    offline: Flag.Boolean("offline").pipe(
      Flag.withDescription("Use this node's local copy instead of the store"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ file, offline }) {
    const { backUpFolder, backUpStore, withStore } = yield* Effect.promise(() => import("../../config/configBackup.ts"))
    const revision = yield* offline ? backUpFolder(file) : withStore(currentVersion, backUpStore(file))
    yield* Console.log(`${file}: revision ${revision} of the shared configuration`)
  }, Effect.provide(quiet))
).pipe(
  Command.withDescription(
    "Back up the configuration that nodes share in a store to a file. The files of this machine: backup"
  )
)

const storeRestoreCommand = Command.make(
  "restore",
  {
    file: backupFile,
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Overwrite the shared configuration on all nodes"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ file, force }) {
    const { restoreStore, withStore } = yield* Effect.promise(() => import("../../config/configBackup.ts"))
    const revision = yield* Effect.scoped(withStore(currentVersion, restoreStore(file, force)))
    yield* Console.log(`${file}: in the store as revision ${revision}`)
  }, Effect.provide(quiet))
).pipe(Command.withDescription("Restore a backup to an empty store. The files of this machine: restore"))

export const storeCommand = Command.make("store").pipe(
  Command.withDescription("Back up and restore the configuration that nodes share in a store"),
  Command.withSubcommands([storeBackupCommand, storeRestoreCommand]),
  Command.provide(Environment.layer)
)

const folderArgument = (description: string) => Argument.String("dir").pipe(Argument.withDescription(description))

export const backupCommand = Command.make(
  "backup",
  { dir: folderArgument("New or empty directory") },
  Effect.fnUntraced(function*({ dir }) {
    const { backUp } = yield* Effect.promise(() => import("./backup.ts"))
    const { files, folder, hasStoreKey } = yield* backUp(dir)
    yield* Console.log(`${folder}: ${count(files, "file")}${hasStoreKey ? ", the store key included" : ""}`)
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription(
    "Back up the configuration and data directory of this machine, even while the gateway runs; the backup contains secrets. What nodes share: store backup"
  )
)

export const restoreCommand = Command.make(
  "restore",
  {
    dir: folderArgument("Folder of a backup"),
    force: Flag.Boolean("force").pipe(
      Flag.withDescription("Overwrite existing files"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function*({ dir, force }) {
    const { restore } = yield* Effect.promise(() => import("./backup.ts"))
    const { created_at, isConfigUnused, storeKey, version, written } = yield* restore(dir, { force })
    yield* Console.log(`${count(written.length, "file")} of ${created_at} (version ${version}) restored:`)
    for (const path of written) yield* Console.log(`  ${path}`)
    if (storeKey !== undefined) yield* Console.log(`GATEWAY_STORE_KEY must be the text of ${storeKey}`)
    if (isConfigUnused) {
      yield* Console.error("GATEWAY_CONFIG_JSON is set: the gateway starts with it, not with the restored file")
    }
  })
).pipe(
  Command.provide(Environment.layer),
  Command.withDescription(
    "Restore a backup to the configuration and data directory of this machine. What nodes share: store restore"
  )
)
