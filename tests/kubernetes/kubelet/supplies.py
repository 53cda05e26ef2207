"""What a container is given: its environment, and the contents of its volumes. All of it is read from the API
when the pod starts.
"""

import base64
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import requests

from tests.kubernetes.api import Api, Refused, Thing
from tests.kubernetes.kubelet.containers import HOME, Mount

IMAGE = {
    "PATH": f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": HOME,
    "LANG": "C.UTF-8",
}
"""The environment that an image would bring along: with this Python, and the programs beside it, first on
PATH.
"""

_REFERENCE = re.compile(r"\$(\$|\(([A-Za-z_.-][A-Za-z0-9_.-]*)\))")
_ADDRESS = "127.0.0.1"


class Missing(Exception):
    """A Secret, ConfigMap or claim that does not exist yet."""


class Supplies:
    """Reads what the containers of one pod are given. `folder` is the pod's own."""

    def __init__(self, api: Api, pod: Thing, folder: Path) -> None:
        self._api, self._pod, self._folder = api, pod, folder
        self._core = f"/api/v1/namespaces/{pod['metadata']['namespace']}"

    def environment(self, container: Thing) -> dict[str, str]:
        """Return the variables of a container. Raises Missing if one of them cannot be known yet."""
        found = dict(IMAGE) | {"HOSTNAME": self._pod["metadata"]["name"]}
        for source in container.get("envFrom", []):
            kind, reference = next(
                (kind, source[f"{kind}Ref"]) for kind in ("secret", "configMap") if f"{kind}Ref" in source
            )
            data = self._data(kind, reference["name"], optional=reference.get("optional", False))
            found |= {source.get("prefix", "") + name: value.decode() for name, value in data.items()}
        for variable in container.get("env", []):
            value = self._value(variable, container, found)
            if value is not None:
                found[variable["name"]] = value
        return found

    def mounts(self, container: Thing) -> Sequence[Mount]:
        """Return the mounts of a container, whose volumes have been made before."""
        found = []
        for mount in container.get("volumeMounts", []):
            host = self._volume_folder(mount["name"])
            path = expanded(mount.get("subPathExpr", ""), {}) or mount.get("subPath", "")
            found.append(
                Mount(host / path if path else host, Path(mount["mountPath"]), mount.get("readOnly", False))
            )
        return found

    def make_volumes(self) -> None:
        """Make every volume of the pod. Raises Missing if one of them cannot be made yet."""
        for volume in self._pod["spec"].get("volumes", []):
            self._make(volume)

    def _make(self, volume: Thing) -> None:
        place = self._folder / "volumes" / volume["name"]
        if "hostPath" in volume or "persistentVolumeClaim" in volume:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.symlink_to(self._host_path(volume))
            return
        place.mkdir(parents=True, exist_ok=True)
        if "emptyDir" in volume:
            return
        sources = volume["projected"]["sources"] if "projected" in volume else [volume]
        for source in sources:
            for name, (content, mode) in self._files(source).items():
                file = place / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.unlink(missing_ok=True)
                file.touch(mode=mode)
                file.write_bytes(content)

    def _files(self, source: Thing) -> dict[str, tuple[bytes, int]]:
        """Return the files of one source, with their modes, by their paths."""
        if "serviceAccountToken" in source:
            return {source["serviceAccountToken"]["path"]: (self._token().encode(), 0o600)}
        if "downwardAPI" in source:
            items = source["downwardAPI"]["items"]
            return {
                item["path"]: (self._field(item["fieldRef"]["fieldPath"]).encode(), 0o644) for item in items
            }
        kind = "secret" if "secret" in source else "configMap"
        reference = source[kind]
        data = self._data(
            kind, reference.get("secretName") or reference["name"], optional=reference.get("optional", False)
        )
        mode = reference.get("defaultMode", 0o644)
        if "items" not in reference:
            return {name: (content, mode) for name, content in data.items()}
        return {item["path"]: (data[item["key"]], item.get("mode", mode)) for item in reference["items"]}

    def _volume_folder(self, name: str) -> Path:
        return (self._folder / "volumes" / name).resolve()

    def _host_path(self, volume: Thing) -> Path:
        if "hostPath" in volume:
            return Path(volume["hostPath"]["path"])
        claim = self._read(
            f"{self._core}/persistentvolumeclaims/{volume['persistentVolumeClaim']['claimName']}"
        )
        spec = self._read(f"/api/v1/persistentvolumes/{claim['spec']['volumeName']}")["spec"]
        return Path((spec.get("hostPath") or spec["local"])["path"])

    def _value(self, variable: Thing, container: Thing, known: Mapping[str, str]) -> str | None:
        """Return the variable's value; None if it refers to an optional key that there is not."""
        source = variable.get("valueFrom")
        if source is None:
            return expanded(variable.get("value", ""), known)
        if "fieldRef" in source:
            return self._field(source["fieldRef"]["fieldPath"])
        if "resourceFieldRef" in source:
            section, _, name = source["resourceFieldRef"]["resource"].partition(".")
            return str(container["resources"][section][name])
        kind, reference = next(
            (kind, source[f"{kind}KeyRef"]) for kind in ("secret", "configMap") if f"{kind}KeyRef" in source
        )
        data = self._data(kind, reference["name"], optional=reference.get("optional", False))
        if reference["key"] in data:
            return data[reference["key"]].decode()
        if reference.get("optional"):
            return None
        raise Missing(f"couldn't find key {reference['key']} in {kind} {reference['name']}")

    def _field(self, path: str) -> str:
        meta, spec = self._pod["metadata"], self._pod["spec"]
        values: Mapping[str, Callable[[], str]] = {
            "metadata.name": lambda: meta["name"],
            "metadata.namespace": lambda: meta["namespace"],
            "metadata.uid": lambda: meta["uid"],
            "spec.nodeName": lambda: spec["nodeName"],
            "spec.serviceAccountName": lambda: spec["serviceAccountName"],
            "status.podIP": lambda: _ADDRESS,
            "status.hostIP": lambda: _ADDRESS,
        }
        labelled = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
        return meta.get(labelled[1], {}).get(labelled[2], "") if labelled else values[path]()

    def _token(self) -> str:
        spec, meta = self._pod["spec"], self._pod["metadata"]
        bound = {"kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"boundObjectRef": bound},
        }
        path = f"{self._core}/serviceaccounts/{spec['serviceAccountName']}/token"
        return str(self._api.post(path, asked)["status"]["token"])

    def _data(self, kind: str, name: str, *, optional: bool) -> dict[str, bytes]:
        """Return the entries of a Secret or ConfigMap; none if it is optional and missing."""
        try:
            found = self._read(f"{self._core}/{kind.lower()}s/{name}")
        except Missing:
            if optional:
                return {}
            raise
        if kind == "secret":
            return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}
        binary = {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}
        return binary | {key: value.encode() for key, value in (found.get("data") or {}).items()}

    def _read(self, path: str) -> Thing:
        try:
            return self._api.get(path)
        except Refused as error:
            # A kubelet may read what its pods refer to; the API server learns of that a moment after the pod
            # was bound.
            if error.status in (requests.codes.not_found, requests.codes.forbidden):
                kind, name = path.split("/")[-2:]
                raise Missing(f'{kind.removesuffix("s")} "{name}" not found') from error
            raise


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Replace $(NAME) as Kubernetes does: an unknown name stays as it is, and $$ is a dollar."""
    return _REFERENCE.sub(lambda found: "$" if found[1] == "$" else values.get(found[2], found[0]), text)


def command_of(container: Thing, environment: Mapping[str, str]) -> list[str]:
    """Return the command with its arguments. There are no images, whose entry points could be the default."""
    words = [*container.get("command", []), *container.get("args", [])]
    return [expanded(word, environment) for word in words] or ["true"]


def work_of(container: Thing) -> str:
    return os.path.normpath(container.get("workingDir") or HOME)
