"""ministack behind the gate. Of a deleted change set it reports too little for boto3 to parse, which is
corrected here.
"""

from ministack import app
from ministack.services.cloudformation import changesets

from tests.fakes.iam import gate

said = changesets._xml
changesets._xml = lambda status, name, body: said(
    status, name, body or f"<{name.removesuffix('Response')}Result/>"
)
gate.install()
app.main()
