/**
 * English texts of the pages about the configuration: settings, samples, import and export, about.
 */
import type { Count } from "./count.ts"

/** What the groups of the configuration are about. */
const groupNames: Readonly<Record<string, string>> = {
  admin: "Admin sessions",
  runtime: "Pool and limits",
  compat: "Compatibility",
  responses: "Stored responses",
  embeddings: "Embeddings",
  auto_delete: "Session clean-up",
  msgcompat_mapping: "Models of the messages style",
  model_aliases: "Model aliases",
  captures: "Captures",
  requests: "Records of requests",
  limits: "Limits of requests and replies",
  usage: "Usage"
}

export const configurationTexts = (count: Count) => ({
  settings: {
    form: "Settings",
    lead: "Every change takes effect at once on running traffic. A field left empty takes its default.",
    groups: (name: string) => groupNames[name] ?? name,
    effective: (value: string) => `Effective: ${value}`,
    range: (from: string, to: string) => `${from} to ${to}`,
    changed: "(changed)",
    notSet: "Not set",
    mapPlaceholder: "name = value",
    review: "Review changes",
    changes: "Changes",
    field: "Field",
    now: "Now",
    new: "New",
    noChanges: "Nothing is changed.",
    discard: "Discard",
    changeCount: (n: number) => `${count(n, "change", "changes")} not saved yet.`,
    saved: "The settings were saved.",
    refused: "The form has mistakes.",
    faultyLines: (lines: string) => `Not in the form name = value: line ${lines}.`,
    changedMeanwhile:
      "The configuration was changed meanwhile, and nothing was saved. The form now shows it as it is, with your changes: review them again.",
    fromFile: "Set in the configuration file",
    fromFileHint: "These are changed in the file; an edit is applied without a restart.",
    configured: "Configured",
    inEffect: "In effect",
    password: "Password",
    presentPassword: "Present admin key or password",
    newPassword: "New password",
    changePassword: "Change password",
    passwordHint:
      "It stands in for the admin key from then on and ends every session, this one too. At least 8 characters.",
    passwordChanged: "The password was changed."
  },
  samples: {
    lead: "A raw sample is what the upstream sent, byte for byte: to look at, and to play again in any style.",
    message: "Message",
    capture: "Capture",
    captured: (id: string) => id === "" ? "The reply was captured." : `The reply was captured as ${id}.`,
    search: "Search captures",
    capturedReplies: "Captured replies",
    reload: "Reload",
    asked: "Asked",
    answered: "Answered",
    rounds: "Rounds",
    actions: "Actions",
    save: "Save",
    saveOf: (chain: string) => `Save ${chain}`,
    saved: (id: string) => `The sample was saved as ${id}.`,
    noneCaptured: "Nothing is captured yet.",
    noneFound: "No captured reply has that in it.",
    savedSamples: "Saved samples",
    style: "Style",
    sample: "Sample",
    created: "Saved",
    model: "Model",
    size: "Size",
    noneSaved: "No sample is saved yet.",
    replay: "Replay",
    replayOf: (id: string) => `Replay ${id}`,
    replayTitle: (id: string) => `Replay of ${id}`,
    replayFailed: "The sample could not be played.",
    deleted: (id: string) => `${id} was deleted.`
  },
  transfer: {
    export: "Export",
    exportHint: "A backup with keys, passwords and configured tokens: keep it as you keep those.",
    exported: "The configuration was exported.",
    exportedField: "Exported configuration",
    copied: "The configuration was copied.",
    import: "Import",
    importHint: "Keys, accounts and settings are taken as a whole or not at all. Try it first.",
    importField: "Configuration to import",
    mode: "Mode",
    merge: "Merge",
    replace: "Replace",
    preview: "Preview import",
    doImport: "Import",
    notJson: (reason: string) => `This is no JSON: ${reason}`,
    notObject: "This is no configuration: a JSON object is wanted.",
    wouldImport: (keys: number, accounts: number) =>
      `It would bring ${count(keys, "key", "keys")} and ${
        count(accounts, "account", "accounts")
      }. Nothing has changed yet.`,
    imported: (keys: number, accounts: number) =>
      `${count(keys, "key", "keys")} and ${count(accounts, "account", "accounts")} were imported.`,
    hostSync: "Host sync",
    state: "State",
    synced: "The configuration is the one that was synced.",
    differs: "The configuration has changed since the last sync.",
    never: "It was never synced.",
    lastSync: "Last sync",
    project: "Project",
    token: "Token",
    tokenThere: "configured",
    hostHint: "HOST_TOKEN and HOST_PROJECT_ID say where to sync to.",
    syncNow: "Sync now"
  },
  about: {
    version: "Version",
    running: "Running",
    latest: "Latest release",
    release: "Release",
    unknown: "not known",
    check: "Check for updates",
    upToDate: "This is the latest release.",
    update: (version: string) => `Version ${version} is out.`,
    checkFailed: (reason: string) => `The latest release could not be looked up: ${reason}`,
    documents: "API documents",
    documentsHint: "Everything that the console does, a script can do: it uses the admin API.",
    docs: "Documents to read and try",
    openapi: "OpenAPI document"
  }
})
