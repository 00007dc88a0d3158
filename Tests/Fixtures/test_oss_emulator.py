"""The emulator, held against the vendor's own clients, the known vectors, and each rule by a raw request.

    python -m unittest -v test_oss_emulator        in this folder, with a Python that has the vendor's packages
"""

import base64
import datetime
import hashlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
import xml.etree.ElementTree as ElementTree
from email.utils import formatdate
from pathlib import Path
from urllib.parse import quote, urlencode

import alibabacloud_oss_v2 as oss_v2
import oss2
from alibabacloud_oss_v2.types import Credentials, HttpRequest, SigningContext
from alibabacloud_tea_openapi.utils import Utils
from alibabacloud_tea_openapi.utils_models import Config
from alibabacloud_vod20170321 import models as vod_models
from alibabacloud_vod20170321.client import Client as VodClient
from aliyunsdkcore.acs_exception.exceptions import ServerException
from aliyunsdkcore.auth.credentials import StsTokenCredential
from aliyunsdkcore.client import AcsClient
from aliyunsdkvod.request.v20170321 import CreateUploadImageRequest, CreateUploadVideoRequest, RefreshUploadVideoRequest
from Tea.exceptions import TeaException

import oss_signatures as signatures

LONG = "LTAI5tTestLongLivedKey", "LongLivedSecret0123456789abcdef"
HERE = Path(__file__).parent
SMALL = 102400


def crc64(data):
    one = signatures.Crc64()
    one.update(data)
    return one.crc


def pattern(count):
    return bytes(((i * 2654435761) >> 13) & 255 for i in range(count))


PARTS = [os.urandom(SMALL), os.urandom(SMALL), os.urandom(1000)]


class Emulator(unittest.TestCase):
    """One emulator for a class of tests, and as many empty starts as there are tests."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.process = subprocess.Popen([sys.executable, HERE / "oss_emulator.py", "--port", "0", "--state", cls.folder.name],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        cls.port = json.loads(cls.process.stdout.readline())["port"]
        cls.base = f"http://127.0.0.1:{cls.port}"

    @classmethod
    def tearDownClass(cls):
        cls.process.stdin.close()
        cls.process.wait(10)
        cls.process.stdout.close()
        cls.folder.cleanup()

    def setUp(self):
        self.control("forget", ["record", "faults", "objects", "uploads", "videos"])
        self.control("settings", {"skew": 0, "page_size": 1000, "lifetime": 3000, "path_style": True, "said_lifetime": None, "say_end": True})

    # Asking

    def raw(self, method, target, body=b"", headers=None, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in ({"Host": host or f"127.0.0.1:{self.port}", "Content-Length": str(len(body))} | (headers or {})).items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            answer.data = answer.read()
            return answer
        finally:
            connection.close()

    def control(self, name, wish="ask"):
        answer = self.raw("GET", "/_control/" + name) if wish == "ask" else self.raw("POST", "/_control/" + name, json.dumps(wish).encode())
        self.assertEqual(answer.status, 200, answer.data)
        return json.loads(answer.data)

    def faults(self, *faults):
        self.control("faults", list(faults))

    def sent(self, **facts):
        return [one for one in self.control("record") if all(one[name] == value for name, value in facts.items())]

    def oss(self, method, key, query="", body=b"", headers=None, who=LONG, version=4, when=None, bucket="cameras", target=None, host=None,
            spoil=False):
        """A raw storage request, signed by the vendor's signer classes; `who` is (id, secret[, token])."""
        when = datetime.datetime.fromtimestamp(time.time() if when is None else when, datetime.timezone.utc)
        token = who[2] if len(who) > 2 else None
        target = target or f"/{bucket}/{quote(key)}" + ("?" + query if query else "")
        request = HttpRequest(method, "http://x" + target, headers=dict(headers or {}))
        context = SigningContext(product="oss", region="cn-shanghai", bucket=bucket, key=key, request=request, signing_time=when)
        if version == 1:
            if token:
                request.headers["x-oss-security-token"] = token
            context.credentials = Credentials(who[0], who[1])
            signatures.SignerV1().sign(context)
        else:
            context.credentials = Credentials(who[0], who[1], token)
            signatures.SignerV4().sign(context)
        headers = dict(request.headers)
        if spoil:
            headers["Authorization"] = headers["Authorization"].replace(who[0], "\0").translate(str.maketrans("ab", "ba")).replace("\0", who[0])
            headers["Authorization"] = "".join(headers["Authorization"])
        return self.raw(method, target, body, headers, host)

    def refused(self, answer, status, code, ec=None):
        self.assertEqual(answer.status, status, answer.data)
        said = ElementTree.fromstring(answer.data)
        self.assertEqual(said.findtext("Code"), code, answer.data)
        self.assertEqual(said.findtext("RequestId"), answer.getheader("x-oss-request-id"))
        if ec:
            self.assertEqual((said.findtext("EC"), answer.getheader("x-oss-ec")), (ec, ec))
        return said

    def taken(self, answer, status=200):
        self.assertEqual(answer.status, status, answer.data)
        self.assertTrue(answer.getheader("Date") and answer.getheader("x-oss-request-id"))
        return answer

    def sts(self, **wish):
        new = self.control("keys", wish)
        return new["AccessKeyId"], new["AccessKeySecret"], new["SecurityToken"]

    def start(self, key="v.mp4", **more):
        return ElementTree.fromstring(self.taken(self.oss("POST", key, "uploads", **more)).data).findtext("UploadId")

    def part(self, upload, n, data, key="v.mp4", **more):
        return self.oss("PUT", key, f"partNumber={n}&uploadId={upload}", data, **more)

    def finish(self, upload, parts, key="v.mp4", **more):
        """`parts` is [(number, data or ETag)], or a whole body."""
        if not isinstance(parts, bytes):
            named = [(n, hashlib.md5(it).hexdigest() if isinstance(it, bytes) else it) for n, it in parts]
            parts = ("<CompleteMultipartUpload>" + "".join(
                f"<Part><PartNumber>{n}</PartNumber><ETag>\"{etag}\"</ETag></Part>" for n, etag in named) + "</CompleteMultipartUpload>").encode()
        return self.oss("POST", key, f"uploadId={upload}", parts, **more)

    def whole(self, key="v.mp4", parts=PARTS):
        upload = self.start(key)
        for n, data in enumerate(parts, 1):
            self.taken(self.part(upload, n, data, key))
        return upload


# ------------------------------------------------------------------------------------------------ vectors


class Vectors(unittest.TestCase):
    """Known answers, through the very functions that the emulator verifies with."""

    BUCKET, KEY = "outin-test-bucket", "sv/5a1b2c3d/5a1b2c3d-cam one+é視頻.mp4"
    STS = "STS.NTestAccessKeyId0001", "TestAccessKeySecret0123456789abcdef", "CAISfakeSecurityToken/with+plus=="
    UPLOAD = "0004B9894A22E5B1888A1E29F8236E2D"
    NOTE = ("eyJWb2QiOnsiVGl0bGUiOiJmcm9udCBkb29yIiwiVGFncyI6ImNhbTEsbmlnaHQiLCJDYXRlSWQiOiIxOSIsIklzUHJvY2VzcyI6InRydWUiLCJVc2VyRGF0YSI6ey"
            "JJc1Nob3dXYXRlck1hcmsiOiJmYWxzZSIsIlByaW9yaXR5IjoiNiJ9fX0=")
    CASES = [
        (STS, "POST", "uploads", {"content-type": "video/mp4"}, "TDGmE117eMj6jjGRzrKMWPF8Vhw=",
         "74122625ddc6d5391796ad0763e4c8f7ce9c14d336cb74caef8201c7c2370161", "825df591a18745fc8e9fa871936522a13f7e90a15f32d65450fa3ff01ca9eb19"),
        (STS, "PUT", f"partNumber=1&uploadId={UPLOAD}", {"content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}, "mHl7LHNTnu2uew3GnRSKuFWsAqY=",
         "dd4bd7eae6202913c9bafee111363fbdbab948e19abb5ea9d6b1a6eb113b7432", "3b63d0a8f48740003c6a15f56ad383a616a29d7e23420562fa1ff89cfc90b6d9"),
        (STS, "GET", f"uploadId={UPLOAD}&max-parts=1000&part-number-marker=2", {}, "aTf4lrRFXi3iWRE4kIN5cvpETeM=",
         "f576ad466a7adc1779a039786787ab01a4e3d5a7dad1569163c36c44d9830ba4", "954498fe4792b0ea5c0607908850deb81419336d8646ddaa2068482afa15b8d6"),
        (STS, "POST", f"uploadId={UPLOAD}", {"content-type": "application/xml", "x-oss-notification": NOTE}, "Io+2jUFaDNc+5YfeGArA9Cz5gFA=",
         "b6d5c93a6297a9a6bf2e699c56a1cb43ebe4ce8d3412e7f1d524ed2a22992c36", "b258b2b83fb238aa41b2b472510d7a71c6317f765fb95d7f6fca0e46610dbd4f"),
        (STS, "DELETE", f"uploadId={UPLOAD}", {}, "HWmddwc9ehSCLp13v04HTahck1Q=",
         "dfbf65b349897c742151d3e32bb0d9dd3f102b49934d90fd08fa67f11fe01a0b", "abe55438971cad7a77909340eae8e5e044e9013c74d599726fba08fbb0c4f837"),
        (STS, "PUT", "", {"content-type": "image/jpeg", "x-oss-meta-cam": "Front Door", "x-oss-forbid-overwrite": "true"},
         "3EU0tDtP8bt7K0uxZLVdjYocHk8=", "178909857088ea345fb6351bed294c391be06f7348c52f0dde22cf44ed0454ea",
         "f0e8857798676ddb267ff9a88252d344796816091dd7f0fe6d81d48ee4802bb6"),
        (STS, "POST", "append&position=65536", {"content-type": "application/octet-stream"}, "GcQzW3gKjjUaZzjAYI4oGpCMcSw=",
         "b788e03076e2a69814f587f85500cfe4c3feba32a43b140f64b99d42af08c6fb", "e4d07459b291e20fbcd2b750ea2bffac9de4898763934c557ab7cd76c0503484"),
        (LONG, "POST", "uploads", {"content-type": "video/mp4"}, "7oVtNq3sxtj35JhTSrTfOkGmtdw=",
         "a5adf43c8494350c56ca8b838426f00871a2f50710f1a0f8b94ff4606690815f", "f705702bb500cfd86d6b347f645986a1c8b00a85a9766379cb11e1ac82dd74be"),
        (LONG, "PUT", f"partNumber=1&uploadId={UPLOAD}", {"content-md5": "1B2M2Y8AsgTpgAmY7PhCfg=="}, "YWqEXOMPLgOuZV+ycvYTzJ9EFs8=",
         "38cb0a125905acdba8c908cad0eff82a31e394974bf82fdeae07fc4ee4fda1ab", "2e9193da4fd3f6730277bfa9c5971224b8bcb51bcfff16b8dc74bf1f2ef2e882"),
    ]

    def headers(self, who, more):
        return more | ({"x-oss-security-token": who[2]} if len(who) > 2 else {})

    def test_first_signature(self):
        for who, method, query, more, right, _, _ in self.CASES:
            with self.subTest(method=method, query=query):
                headers = {"date": "Sat, 13 Jul 2024 08:30:05 GMT"} | self.headers(who, more)
                self.assertEqual(signatures.oss_v1(who[1], method, self.BUCKET, self.KEY, signatures.pairs(query), headers)[1], right)

    def test_fourth_signature(self):
        for who, method, query, more, _, canonical, right in self.CASES:
            with self.subTest(method=method, query=query):
                headers = {"x-oss-date": "20240713T083005Z", "x-oss-content-sha256": "UNSIGNED-PAYLOAD"} | self.headers(who, more)
                for spelled in (query, query.replace("uploads", "uploads=").replace("append&", "append=&")):
                    found = signatures.oss_v4(who[1], method, self.BUCKET, self.KEY, signatures.pairs(spelled), headers, "cn-shanghai", "20240713")
                    self.assertEqual(hashlib.sha256(found[2].encode()).hexdigest(), canonical)
                    self.assertEqual(found[1], right)

    def test_fourth_signature_with_further_headers(self):
        headers = {"x-oss-date": "20240713T083005Z", "x-oss-content-sha256": "UNSIGNED-PAYLOAD", "content-length": "1048576",
                   "host": "outin-test-bucket.oss-cn-shanghai.aliyuncs.com", "content-type": "application/octet-stream"}
        found = signatures.oss_v4(LONG[1], "PUT", self.BUCKET, "a/b.mp4", signatures.pairs("partNumber=2&uploadId=U1"), headers, "cn-shanghai",
                                  "20240713", ["content-length", "host"])
        self.assertEqual(hashlib.sha256(found[2].encode()).hexdigest(), "9b86bc32c545f781d8f7b9ba161473d52adec184c0e8c3079998bdd25b12e7fc")
        self.assertEqual(found[1], "485c20c8af705df3278fbe29236116421c083f3e727f677a8447e5cb427ab3c8")

    BUSINESS = {"Title": "front door 視頻 * ~ (1)", "FileName": "cam one/2024-07-13_08-30.mp4", "FileSize": "10485760", "Tags": "cam1,night",
                "CateId": "19"}

    def test_remote_call_by_query(self):
        common = {"Version": "2017-03-21", "Format": "JSON", "SecurityToken": self.STS[2], "AccessKeyId": self.STS[0],
                  "SignatureMethod": "HMAC-SHA1", "SignatureVersion": "1.0", "SignatureNonce": "15215528852396c1-fixed-nonce",
                  "Timestamp": "2024-07-13T08:30:05Z"}
        create = common | self.BUSINESS | {"Action": "CreateUploadVideo"}
        more = create | {"RegionId": "cn-shanghai", "SignatureType": ""}
        refresh = common | {"Action": "RefreshUploadVideo", "VideoId": "93ab850b4f6f44eab54b6e91d24d81d4"}
        for given, method, right in ((create, "GET", "FK7kxsCd2d950/4uPl80ALRMfdA="), (create, "POST", "uo5CV2z2uk+XBCjthqENArZnatM="),
                                     (more, "GET", "BWyV/Faj37+EEf/e5M/0hNnPnws="), (more, "POST", "FsPuribr7bAN1cxWaLwpEWF5OV8="),
                                     (refresh, "GET", "qkh6plv1XI/aNwY/Exbj9rvHwfU="),
                                     (refresh | {"SignatureType": ""}, "GET", "XoqfCnwcuUPj2ygxE9tq1/Kovw8=")):
            string, found = signatures.rpc(self.STS[1], method, given | {"Signature": "what is here does not count"})
            self.assertEqual(found, right)
            self.assertTrue(string.startswith(method + "&%2F&AccessKeyId%3DSTS."))

    def test_remote_call_by_headers(self):
        headers = {"host": "vod.cn-shanghai.aliyuncs.com", "x-acs-action": "CreateUploadVideo", "x-acs-version": "2017-03-21",
                   "x-acs-date": "2024-07-13T08:30:05Z", "x-acs-signature-nonce": "15215528852396c1-fixed-nonce",
                   "x-acs-content-sha256": signatures.NO_BODY, "x-acs-security-token": self.STS[2]}
        for query in (quote, lambda value: quote(value).replace("%20", "+")):
            wire = "&".join(f"{name}={query(value)}" for name, value in self.BUSINESS.items())
            found = signatures.acs3(self.STS[1], self.STS[0], "POST", signatures.pairs(wire), headers, list(headers), signatures.NO_BODY)
            self.assertTrue(found.endswith("Signature=12db25ddfb1e9b945bf274f3d19a0475110733680616b660540af79e22f560bd"))
            self.assertIn("SignedHeaders=host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-security-token;x-acs-signature-nonce;x-acs-version,",
                          found)

    def test_check_sum(self):
        for data, right in ((b"", 0), (b"a", 3675645893302102789), (b"123456789", 0x995DC9BBDF1939FA), (b"hello world", 5981764153023615706),
                            (bytes(1 << 20), 6947770692288575170), (b"1234567890", 12811388247244714686)):
            self.assertEqual(crc64(data), right)
        self.assertEqual(signatures.combine(6748440630437108969, 6285347597771850461, 5), 12811388247244714686)
        whole = pattern(300000)
        self.assertEqual(whole[:8].hex(), "00bb7733efab6622")
        self.assertEqual(crc64(whole), 4503234324560479078)
        sums = [crc64(whole[a:b]) for a, b in ((0, 102400), (102400, 204800), (204800, 300000))]
        self.assertEqual(sums, [5021391385786633429, 1821386245960610595, 10961634997677807843])
        two = signatures.combine(sums[0], sums[1], 102400)
        self.assertEqual(two, 10848372272289255017)
        self.assertEqual(signatures.combine(two, sums[2], 95200), 4503234324560479078)


# ------------------------------------------------------------------------------------------------ the vendor's clients


class Clients(Emulator):
    KEY = "sv/cam one+é視頻 ~*.mp4"

    def auths(self):
        sts = self.sts()
        return {"V1 long": oss2.Auth(*LONG), "V1 STS": oss2.StsAuth(*sts), "V4 long": oss2.AuthV4(*LONG),
                "V4 STS": oss2.StsAuth(*sts, auth_version="v4")}

    def bucket(self, auth, name="cameras"):
        return oss2.Bucket(auth, self.base, name, region="cn-shanghai")

    def test_older_client(self):
        data = os.urandom(350000)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "v.mp4")
            file.write_bytes(data)
            for name, auth in self.auths().items():
                with self.subTest(name):
                    bucket = self.bucket(auth)
                    put = bucket.put_object(self.KEY, data, headers={"x-oss-meta-cam": "Front Door", "Content-Type": "video/mp4"})
                    self.assertEqual((put.status, put.crc), (200, crc64(data)))
                    self.assertEqual(put.etag, hashlib.md5(data).hexdigest().upper())
                    self.assertEqual(bucket.get_object(self.KEY).read(), data)
                    self.assertEqual(bucket.get_object(self.KEY, byte_range=(10, 19)).read(), data[10:20])
                    head = bucket.head_object(self.KEY)
                    self.assertEqual((head.content_length, head.object_type, head.headers["x-oss-meta-cam"]), (len(data), "Normal", "Front Door"))
                    self.assertTrue(bucket.object_exists(self.KEY))
                    self.assertEqual([one.key for one in oss2.ObjectIteratorV2(bucket, prefix="sv/")], [self.KEY])
                    self.assertEqual([one.key for one in oss2.ObjectIterator(bucket, delimiter="/")], ["sv/"])
                    bucket.delete_object(self.KEY)
                    self.assertFalse(bucket.object_exists(self.KEY))
                    oss2.resumable_upload(bucket, self.KEY, str(file), multipart_threshold=1, part_size=SMALL, num_threads=3,
                                          store=oss2.ResumableStore(root=folder))
                    found = self.control("objects")["cameras/" + self.KEY]
                    self.assertEqual((found["sha256"], found["type"]), (hashlib.sha256(data).hexdigest(), "Multipart"))
                    self.assertEqual(found["crc"], found["said_crc"])

    def test_older_client_by_hand(self):
        self.control("settings", {"page_size": 2})
        for name, auth in self.auths().items():
            with self.subTest(name):
                bucket = self.bucket(auth)
                upload = bucket.init_multipart_upload(self.KEY).upload_id
                given = []
                for n, data in enumerate([os.urandom(SMALL) for _ in range(4)] + [b"end"], 1):
                    found = bucket.upload_part(self.KEY, upload, n, data)
                    given.append(oss2.models.PartInfo(n, found.etag, size=len(data), part_crc=found.crc))
                self.faults({"do": "loose_xml", "times": 0})
                parts = list(oss2.PartIterator(bucket, self.KEY, upload, max_parts=3))
                self.assertEqual([(p.part_number, p.etag, p.size) for p in parts], [(p.part_number, p.etag, p.size) for p in given])
                self.assertEqual([u.key for u in oss2.MultipartUploadIterator(bucket, prefix="sv/")], [self.KEY])
                found = bucket.complete_multipart_upload(self.KEY, upload, parts)
                crc = 0
                for part in given:
                    crc = signatures.combine(crc, part.part_crc, part.size)
                self.assertEqual(found.crc, crc)
                self.faults()
                gone = bucket.init_multipart_upload(self.KEY).upload_id
                bucket.upload_part(self.KEY, gone, 1, b"x")
                bucket.abort_multipart_upload(self.KEY, gone)
                with self.assertRaises(oss2.exceptions.NoSuchUpload):
                    bucket.upload_part(self.KEY, gone, 2, b"x")
                self.assertEqual(self.control("uploads"), {})
        self.assertEqual(len(self.sent(operation="ListParts")), 4 * 3)

    def test_older_client_about_buckets(self):
        bucket = self.bucket(oss2.Auth(*LONG))
        self.assertEqual(bucket.get_bucket_info().location, "oss-cn-shanghai")
        self.assertEqual(bucket.get_bucket_location().location, "oss-cn-shanghai")
        with self.assertRaises(oss2.exceptions.NoSuchBucket):
            self.bucket(oss2.Auth(*LONG), "nowhere").put_object("a", b"")

    def test_older_client_with_a_wrong_secret(self):
        for auth in (oss2.Auth(LONG[0], "wrong"), oss2.AuthV4(LONG[0], "wrong")):
            with self.assertRaises(oss2.exceptions.SignatureDoesNotMatch) as caught:
                self.bucket(auth).put_object(self.KEY, b"x")
            self.assertTrue(caught.exception.details["StringToSign"])

    def newer(self, version, who):
        config = oss_v2.config.load_default()
        config.credentials_provider = oss_v2.credentials.StaticCredentialsProvider(*who)
        config.region, config.endpoint, config.use_path_style, config.signature_version = "cn-shanghai", self.base, True, version
        return oss_v2.Client(config)

    def test_newer_client(self):
        data = os.urandom(700000)
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            sts = self.sts()
            for version in ("v1", "v4"):
                for who in (LONG, sts):
                    with self.subTest(version=version, token=len(who) > 2):
                        client = self.newer(version, who)
                        found = client.uploader().upload_file(oss_v2.PutObjectRequest(bucket="cameras", key=self.KEY), file.name,
                                                              part_size=SMALL * 2, parallel_num=3)
                        self.assertEqual(found.status_code, 200)
                        self.assertEqual(self.control("objects")["cameras/" + self.KEY]["md5"], hashlib.md5(data).hexdigest())
                        self.assertEqual(client.get_object(oss_v2.GetObjectRequest("cameras", self.KEY)).body.read(), data)
                        pages = client.list_objects_v2_paginator().iter_page(oss_v2.ListObjectsV2Request("cameras", prefix="sv/"))
                        self.assertEqual([one.key for page in pages for one in page.contents], [self.KEY])

    def test_newer_client_with_a_wrong_secret(self):
        for version in ("v1", "v4"):
            with self.assertRaises(oss_v2.exceptions.OperationError) as caught:
                self.newer(version, (LONG[0], "wrong")).put_object(oss_v2.PutObjectRequest("cameras", "a", body=b"x"))
            self.assertEqual(caught.exception.unwrap().code, "SignatureDoesNotMatch")

    # The video service

    def upload_to(self, found, data):
        """What an uploader does with the two blobs."""
        address, auth = (json.loads(base64.b64decode(found[name])) for name in ("UploadAddress", "UploadAuth"))
        store = oss2.StsAuth(auth["AccessKeyId"], auth["AccessKeySecret"], auth["SecurityToken"])
        bucket = oss2.Bucket(store, address["Endpoint"], address["Bucket"])
        bucket.put_object(address["FileName"], data)
        with self.assertRaises(oss2.exceptions.AccessDenied):
            bucket.put_object(address["FileName"] + "x", data)
        return address

    def modern(self, who):
        return VodClient(Config(access_key_id=who[0], access_key_secret=who[1], security_token=who[2] if len(who) > 2 else None,
                                endpoint=f"127.0.0.1:{self.port}", protocol="http"))

    def test_modern_video_client(self):
        for who in (LONG, self.sts()):
            reference = "job-" + uuid.uuid4().hex
            client = self.modern(who)
            made = client.create_upload_video(vod_models.CreateUploadVideoRequest(
                title="front door 視頻 * ~ (1)", file_name="cam one/a.MP4", file_size=5, tags="cam1,night", reference_id=reference)).body.to_map()
            address = self.upload_to(made, b"hello")
            self.assertTrue(address["FileName"].endswith(".MP4"))
            for wish in ({"video_id": made["VideoId"]}, {"reference_id": reference}):
                again = client.refresh_upload_video(vod_models.RefreshUploadVideoRequest(**wish)).body.to_map()
                self.assertEqual(again["VideoId"], made["VideoId"])
                self.assertEqual(self.upload_to(again, b"world"), address)
                self.assertNotEqual(again["UploadAuth"], made["UploadAuth"])
            image = client.create_upload_image(vod_models.CreateUploadImageRequest(image_type="cover", image_ext="jpg")).body.to_map()
            self.assertTrue(self.upload_to(image, b"picture")["FileName"].endswith(".jpg"))
            with self.assertRaises(TeaException) as caught:
                client.create_upload_video(vod_models.CreateUploadVideoRequest(title="x", file_name="a.mp4", reference_id=reference))
            self.assertEqual(caught.exception.code, "InvalidParameter.ReferenceId")
        with self.assertRaises(TeaException) as caught:
            self.modern((LONG[0], "wrong")).refresh_upload_video(vod_models.RefreshUploadVideoRequest(video_id="x"))
        self.assertEqual(caught.exception.code, "SignatureDoesNotMatch")

    def classic(self, who):
        client = AcsClient(*who[:2], "cn-shanghai") if len(who) < 3 else AcsClient(region_id="cn-shanghai", credential=StsTokenCredential(*who))

        def call(kind, **given):
            request = getattr(kind, kind.__name__.rsplit(".", 1)[1])()
            request.set_accept_format("JSON")
            request.set_protocol_type("http")
            request.set_endpoint(f"127.0.0.1:{self.port}")
            for name, value in given.items():
                getattr(request, "set_" + name)(value)
            return json.loads(client.do_action_with_exception(request))

        return call

    def test_classic_video_client(self):
        for who in (LONG, self.sts()):
            call = self.classic(who)
            made = call(CreateUploadVideoRequest, Title="front door 視頻 * ~ (1)", FileName="cam one/a.mp4", FileSize=5, Tags="cam1,night")
            address = self.upload_to(made, b"hello")
            again = call(RefreshUploadVideoRequest, VideoId=made["VideoId"])
            self.assertEqual(self.upload_to(again, b"world"), address)
            self.upload_to(call(CreateUploadImageRequest, ImageType="default"), b"picture")
            self.assertTrue(self.control("videos")[made["VideoId"]]["uploaded"])
            self.assertEqual(self.control("videos")[made["VideoId"]]["refreshes_after_upload"], 1)
        with self.assertRaises(ServerException) as caught:
            self.classic((LONG[0], "wrong"))(RefreshUploadVideoRequest, VideoId="x")
        # Its own check tells a wrong secret from a wrong string by comparing the strings, so the string was right.
        self.assertEqual(caught.exception.get_error_code(), "InvalidAccessKeySecret")
