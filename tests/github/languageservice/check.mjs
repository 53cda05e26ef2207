// Prints, as JSON, what GitHub's language service says of workflows and actions.
//
// Arguments: the repository's root, the repository's name (owner/name: a reference to it is one to the root), the folder with what is known
// of other repositories' actions (OWNER/NAME/action.yml), then the files to check.
import {readFileSync} from "node:fs";
import {join} from "node:path";
import {pathToFileURL} from "node:url";
import {validate} from "@actions/languageservice";
import {TextDocument} from "vscode-languageserver-textdocument";
import {parse} from "yaml";

const [root, own, known, ...files] = process.argv.slice(2);

const read = (...parts) => readFileSync(join(...parts), "utf8");
const isOwn = ({owner, name}) => `${owner}/${name}` === own;

const config = {
  actionsMetadataProvider: {
    async fetchActionMetadata(action) {
      const folder = isOwn(action) ? join(root, action.path) : join(known, action.owner, action.name);
      return parse(read(folder, "action.yml"));
    }
  },
  fileProvider: {
    // "./x" and "$/x", and "owner/name/x@ref" where that is this repository.
    async getFileContent(reference) {
      if (reference.repository && !isOwn({owner: reference.owner, name: reference.repository})) {
        throw new Error(`${reference.owner}/${reference.repository} is not known here`);
      }
      return {name: reference.path, content: read(root, reference.path)};
    }
  }
};

async function check(file) {
  const document = TextDocument.create(pathToFileURL(join(root, file)).href, "yaml", 0, read(root, file));
  const diagnostics = await validate(document, config);
  return diagnostics.map(({range, message}) => ({file, line: range.start.line + 1, message}));
}

Promise.all(files.map(check)).then(found => console.log(JSON.stringify(found.flat())));
